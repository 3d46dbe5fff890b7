"""The page that `deconv-show` writes: a drawing of a model, and what is known of it."""
