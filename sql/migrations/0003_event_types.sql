-- Event types, their versions and schemas; what endpoints need for If-Match and for canceling what is pending.

-- Counts up with every change of what people configure, so that If-Match can refuse a change of something that is
-- not what the caller saw. Health and counters do not count.
alter table endpoint add column revision integer not null default 1;
alter table tenant add column revision integer not null default 1;

-- Deliveries created up to then are to be canceled; set by a person, done and reset by the node that owns the bucket.
alter table endpoint add column cancel_before timestamptz;
