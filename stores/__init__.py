"""Memory in Redis: one module per tier, the schemas, the connection and the embedder."""
