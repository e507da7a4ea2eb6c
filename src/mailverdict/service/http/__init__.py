"""HTTP: around each request, bodies, replies, routes, OpenAPI, status page, metrics."""
