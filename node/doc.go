// Package node wires a Compax service together and runs it: store, blobs, bus,
// delivery service, listeners. It is the only place where the parts of a
// server meet; it decides nothing that the parts do not already decide.
//
// The zero [Config] is a whole service with embedded defaults: a SQLite file,
// an in-process bus, blobs on disk, the API on 127.0.0.1:8080 and metrics on
// 127.0.0.1:9091, everything under ./compax-data. Parts start in order and stop
// in reverse.
//
// Begin reading at [New] and [Node.Run] in node.go; config.go says what can be
// set, file.go where from.
package node
