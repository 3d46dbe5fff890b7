"""Pictures of models: the page that `deconv-show` writes, SVG and PNG drawings."""
