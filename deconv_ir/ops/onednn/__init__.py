"""Operations of oneDNN Graph that are not operations of an OpenVINO opset."""
