"""The page that `deconv-show` writes: a drawing of a model, and facts about it."""
