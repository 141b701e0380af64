"""Content types of the Web Server's replies."""

JSON, PNG, TEXT, BINARY = b"application/json", b"image/png", b"text/plain", b"application/octet-stream"
