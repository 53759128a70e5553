// Package sim runs a whole deployment from one seed: people with several
// devices, a delivery service on its real store, and everything that can befall
// them: requests lost, doubled and cut, devices that crash at any persisted
// step, phones that are lost, profiles that are copied, weeks away, a service that
// stops, starts, and comes back from an old backup.
//
// Nothing waits and nothing runs beside the seed's own order: devices call the
// service's handler in the simulator's goroutine, the clock moves between steps.
// A run that fails prints its seed and its story; the same seed is the same run
// as far as the steps go (ciphertext that the standard library randomises by
// itself differs, which nothing here depends on).
//
// Begin reading at World.Run, then Judge for what must hold at the end.
package sim
