package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"

	"github.com/askucher/compax-core/delivery"
)

// BeginBlob reserves an upload of size bytes of ciphertext.
func (c *Client) BeginBlob(ctx context.Context, size int64) (delivery.BlobView, error) {
	var v delivery.BlobView
	err := c.json(ctx, call{route: delivery.RouteUpload}, delivery.BlobRequest{Size: size}, &v)
	return v, err
}

// BlobState tells how much of an upload the service holds durably: where to go
// on after an interruption.
func (c *Client) BlobState(ctx context.Context, id delivery.BlobID) (delivery.BlobView, error) {
	var v delivery.BlobView
	err := c.json(ctx, call{route: delivery.RouteBlobState, path: []string{id.String()}}, nil, &v)
	return v, err
}

// UploadBlob streams size bytes from r to an offset, which must be what the
// service holds. It is sent once; after a fault ask [Client.BlobState] and go on
// from there.
func (c *Client) UploadBlob(ctx context.Context, id delivery.BlobID, offset int64, r io.Reader, size int64) error {
	return c.drop(ctx, call{
		route: delivery.RouteUploadTo, path: []string{id.String()}, stream: r, size: size,
		header: map[string]string{delivery.HeaderOffset: strconv.FormatInt(offset, 10)},
	})
}

// DownloadBlob streams a blob from an offset to its end. The caller closes it;
// a stream that ends early is an error of Read.
func (c *Client) DownloadBlob(ctx context.Context, id delivery.BlobID, offset int64) (io.ReadCloser, error) {
	q := call{route: delivery.RouteBlob, path: []string{id.String()}}
	if offset > 0 {
		q.header = map[string]string{"Range": fmt.Sprintf("bytes=%d-", offset)}
	}
	r, err := c.send(ctx, q)
	if err != nil {
		return nil, err
	}
	if offset > 0 && r.Status != 206 {
		_ = r.Body.Close() // given up: nothing to learn from closing
		return nil, fmt.Errorf("%w: the whole blob instead of a range", ErrGarbage)
	}
	return r.Body, nil
}

// PutArchive keeps a sealed segment of history in the place of before, nil for
// none. [delivery.CodeConflict] when something else stands there, or when it is
// sealed under a key of before a revocation; [delivery.CodeTooLarge] when the
// account keeps as much as it may.
func (c *Client) PutArchive(ctx context.Context, name string, sealed, before []byte) error {
	q := call{route: delivery.RouteArchiveSet, path: []string{name}, body: sealed, media: delivery.BinaryType}
	if before != nil {
		sum := sha256.Sum256(before)
		q.query = map[string]string{"replaces": hex.EncodeToString(sum[:])}
	}
	return c.drop(ctx, q)
}

// Archive lists the segments after a name, one page.
func (c *Client) Archive(ctx context.Context, after string) (delivery.ArchiveResponse, error) {
	var out delivery.ArchiveResponse
	q := call{route: delivery.RouteArchive}
	if after != "" {
		q.query = map[string]string{"after": after}
	}
	err := c.json(ctx, q, nil, &out)
	return out, err
}

// ArchiveSegment reads one segment.
func (c *Client) ArchiveSegment(ctx context.Context, name string) ([]byte, error) {
	r, err := c.send(ctx, call{route: delivery.RouteArchiveGet, path: []string{name}})
	if err != nil {
		return nil, err
	}
	return readBody(r, delivery.MaxSegment)
}

// WrappedKeys reads the account keys that are wrapped to this device, by
// generation.
func (c *Client) WrappedKeys(ctx context.Context) ([]delivery.WrappedKeyView, error) {
	var out delivery.WrappedKeysResponse
	err := c.json(ctx, call{route: delivery.RouteWrapped}, nil, &out)
	return out.Keys, err
}

// PutWrappedKey keeps an account key wrapped to one of the identity's devices.
func (c *Client) PutWrappedKey(ctx context.Context, k delivery.WrappedKey) error {
	q := call{route: delivery.RouteWrap, path: []string{k.Device.String(), strconv.FormatUint(k.Generation, 10)}, body: k.Wrapped, media: delivery.BinaryType}
	return c.drop(ctx, q)
}
