-- name: grant_all
-- Tables and views that were made again have no grants.
select grant_outbox(), grant_consumer(), grant_support();
