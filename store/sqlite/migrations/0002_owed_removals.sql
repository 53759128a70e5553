-- Removals that rooms owe are read in the order of devices, page by page.
CREATE INDEX revocations_of_device ON revocations (device, identity);
