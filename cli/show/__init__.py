"""deconv-show: a page that shows a model."""
