package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/askucher/compax-core/bus/bustest"
	"github.com/askucher/compax-core/delivery"
)

func TestBus(t *testing.T) {
	bustest.Bus(t, func(testing.TB) []delivery.Bus { return []delivery.Bus{NewBus()} })
}

func TestBuckets(t *testing.T) {
	bustest.Buckets(t, func(testing.TB) []delivery.Buckets { return []delivery.Buckets{NewBuckets(1024)} })
}

func TestBucketsAreBounded(t *testing.T) {
	b := NewBuckets(160)
	now := time.UnixMilli(1)
	for n := range 10_000 {
		if _, _, err := b.Take(t.Context(), fmt.Sprint(n), 1, 1, 10, now); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	for i := range b.shards {
		kept += len(b.shards[i].of)
	}
	if kept > 160 {
		t.Fatalf("%d buckets are kept, at most 160 may be", kept)
	}
}

func TestFullBucketsGoFirst(t *testing.T) {
	b := NewBuckets(16) // one in each shard
	now := time.UnixMilli(1)
	for n := range 1000 {
		if _, _, err := b.Take(t.Context(), fmt.Sprint(n), 0, 1, 10, now); err != nil {
			t.Fatal(err)
		}
	}
	for i := range b.shards {
		if n := len(b.shards[i].of); n > 1 {
			t.Fatalf("shard %d keeps %d", i, n)
		}
	}
}

func TestAClosedBusKeepsNoSocket(t *testing.T) {
	b := NewBus()
	if _, err := b.Attach([16]byte{1}, func(delivery.Hint) {}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(b.sockets([16]byte{1})); n != 0 {
		t.Fatalf("%d sockets are kept", n)
	}
}
