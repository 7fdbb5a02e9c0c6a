"""What end-to-end and fault tests share: a Postgres, nodes, a receiver of webhooks and a client of the API."""
