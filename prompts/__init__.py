"""What models are asked: one file per call, with its text, typed inputs and reply model."""
