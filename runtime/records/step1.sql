
CREATE TABLE IF NOT EXISTS record(
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, also TEXT NOT NULL,
  used INTEGER NOT NULL, sum INTEGER NOT NULL, value BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS record_key ON record(kind, key);
CREATE INDEX IF NOT EXISTS record_used ON record(kind, used);
CREATE TABLE IF NOT EXISTS other_key(
  kind TEXT NOT NULL, key TEXT NOT NULL, record INTEGER NOT NULL,
  PRIMARY KEY(kind, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS other_key_record ON other_key(record);
CREATE TABLE IF NOT EXISTS total(
  kind TEXT PRIMARY KEY, records INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS record_added AFTER INSERT ON record BEGIN
  INSERT INTO other_key SELECT new.kind, value, new.id FROM json_each(new.also) WHERE true
    ON CONFLICT DO UPDATE SET record = excluded.record;
  INSERT INTO total VALUES(new.kind, 1, length(new.value))
    ON CONFLICT DO UPDATE SET records = records + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER IF NOT EXISTS record_deleted AFTER DELETE ON record BEGIN
  DELETE FROM other_key WHERE record = old.id;
  UPDATE total SET records = records - 1, bytes = bytes - length(old.value)
    WHERE kind = old.kind;
END;