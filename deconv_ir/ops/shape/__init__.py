"""Operations that rearrange elements."""
