"""HTTP: who may ask, bodies, replies, routes, OpenAPI, the status page, limits, metrics."""
