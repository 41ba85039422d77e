"""`make compare`: oclok's default against what people would use instead, on the same rounds."""
