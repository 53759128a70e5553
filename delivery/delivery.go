// Package delivery is the protocol between a device and a delivery service:
// ids, routes, bodies, frames and codes, and the ports that a service stands
// on. It opens no connection, reads no clock and holds no key; both ends
// (delivery/client and delivery/server) import it and never each other.
//
// The conversation, in order:
//
//	device                                   service
//	  POST /v1/devices  credential          → the device is known (enrolment is open)
//	  POST /v1/challenges  device           ← challenge
//	  POST /v1/sessions  signed challenge   ← bearer token, copy counter swapped
//	  POST /v1/keypackages  a batch         → others may add this device
//	  POST /v1/rooms  GroupInfo and tree    → the room exists, epoch 0 or later
//	  POST /v1/keypackages/claim  identity  ← one package for each of its devices
//	  POST /v1/rooms/{id}/append  commit, Welcome, GroupInfo
//	                                        ← seq; the log has one order
//	                                        → a mailbox pointer for each joiner
//	  GET  /v1/mailbox                      ← {room, epoch, start_seq, read_at, welcome}
//	  GET  /v1/rooms/{id}/log?after=N       ← entries after N, contiguous
//	  GET  /v1/connect (WebSocket)
//	    Hello{token, cursors}               → first frame; the URL carries no secret
//	                                        ← Entry, Gap, Mailbox, Ephemeral, Drain
//
// The log is the truth. A socket is a doorbell that may carry the entry it
// rings for; whatever it loses is read from the log.
//
// A refusal is a [*Error]: its [Code] says what the receiver does now. Begin
// reading at [AppendRequest], then ports.go and the two beside it.
package delivery
