package hub

// A file's address and expected content. The hub answers a HEAD of a resolve address with the
// file's ETag: its sha256 for files in LFS, git's blob hash for the others. For LFS files it also
// redirects to a store on another host. The signed address there expires, and the hub is then asked
// for a new one.

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/models/store"
)

// File is a file to download.
type File struct {
	Path   string
	Size   int64
	ETag   string // the blob's name
	SHA256 string // expected hash, "" if the hub does not name it
	GitSHA string // expected git hash, "" if the hub does not name it

	linked  bool   // the ETag is that of the linked content
	address string // current address of the bytes
	foreign bool   // on a host other than the hub
}

func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

func (c *Client) Resolve(ctx context.Context, repo store.Repo, commit string,
	listed ListedFile) (File, error) {
	address := c.Endpoint + "/" + repo.ID() + "/resolve/" + url.PathEscape(commit) + "/" +
		escapePath(listed.Path)
	var f File
	// The hub describes the file before the redirect to its store; a mirror that only redirects to
	// the hub does not.
	described := func(r *http.Response, next *url.URL) bool {
		return r.Header.Get("X-Linked-Etag") != "" && !c.isHub(next)
	}
	err := c.ask(ctx, http.MethodHead, address, repo, listed.Path+" in "+repo.ID(), described,
		func(response *http.Response) (err error) {
			f, err = c.described(response, listed, commit)
			return err
		})
	return f, err
}

// described reads a file's description from the answer to a HEAD.
func (c *Client) described(response *http.Response, listed ListedFile, commit string) (File,
	error) {
	h := response.Header
	wrong := func(format string, args ...any) (File, error) {
		return File{}, &ProtocolError{c.host(), listed.Path + ": " + fmt.Sprintf(format, args...)}
	}
	f := File{Path: listed.Path, Size: -1, SHA256: listed.SHA256,
		address: response.Request.URL.String()}
	redirected := response.StatusCode >= 300
	if redirected {
		next, err := response.Location()
		if err != nil {
			return wrong("it redirects to no address")
		}
		f.address = next.String()
	}
	if u, err := url.Parse(f.address); err != nil || !c.isHub(u) {
		f.foreign = true
	}
	etag := h.Get("X-Linked-Etag")
	if f.linked = etag != ""; !f.linked {
		etag = h.Get("ETag")
	}
	if f.ETag = plainETag(etag); !store.ValidETag(f.ETag) {
		return wrong("its ETag %q names no content", etag)
	}
	if actual := h.Get("X-Repo-Commit"); actual != "" && actual != commit {
		return wrong("it is of commit %s, not of %s", actual, commit)
	}
	size := h.Get("X-Linked-Size")
	if size == "" && !redirected {
		size = h.Get("Content-Length")
	}
	if size != "" {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 0 {
			return wrong("%q is not a size", size)
		}
		f.Size = n
	}
	switch {
	case f.Size < 0:
		f.Size = listed.Size
	case listed.Size >= 0 && listed.Size != f.Size:
		return wrong("the list says %d bytes, the file %d", listed.Size, f.Size)
	}
	if f.Size < 0 {
		return wrong("it has no size")
	}
	if f.Size > maxFileBytes {
		return wrong("it has %d bytes, more than any model's file", f.Size)
	}
	switch raw, err := hex.DecodeString(f.ETag); {
	case err != nil:
	case len(raw) == 32 && f.SHA256 != "" && f.SHA256 != f.ETag:
		return wrong("the list says sha256 %s, the file %s", f.SHA256, f.ETag)
	case len(raw) == 32:
		f.SHA256 = f.ETag
	case len(raw) == 20 && f.SHA256 == "":
		f.GitSHA = f.ETag
	}
	return f, nil
}

// maxFileBytes is the maximum size of a file: far above any real one, and low enough that sums of
// sizes and chunks do not overflow.
const maxFileBytes = 1 << 42

// plainETag removes the weakness mark and the quotes of an ETag header.
func plainETag(etag string) string {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(etag), "W/"), `"`)
}
