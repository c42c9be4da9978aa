// ossrun version --verify: this executable against the signed checksums of its release.
//
// What must stay true: a build without a key, or a release without a signature, is never verified;
// downloads are bounded in size and time.

package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ossrun/ossrun/assets/release/checksums"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/mapping"
)

// releases is the address of published releases.
const releases = "https://github.com/ossrun/ossrun/releases/download"

const maxChecksums = 1 << 20 // bytes

// Tests replace these.
var (
	releaseKey  = checksums.Key
	releaseWait = 30 * time.Second
)

// verify returns this executable's SHA-256 if the signed checksums of its release, at an address or
// in a folder, have the same.
func (b buildInfo) verify(ctx context.Context, from string) (sum string, err error) {
	release := strings.TrimSuffix(cmp.Or(from, releases+"/v"+b.Version), "/")
	if !checksums.HasKey(releaseKey) {
		return "", fail(exitFailure, "%s", checksums.ErrNoKey)
	}
	if Version == "" {
		return "", fail(exitFailure, "this is not the executable of a release. Install one of %s",
			strings.TrimSuffix(releases, "/download"))
	}
	var files [2][]byte
	for i, name := range []string{checksums.File, checksums.Signature} {
		if files[i], err = fetch(ctx, release, name); err != nil {
			return "", err
		}
	}
	list, err := checksums.Verify(files[0], files[1], releaseKey, b.Version)
	if err != nil {
		return "", fail(exitFailure, "%s in %s cannot be trusted: %s", checksums.File, release, err)
	}
	name := checksums.Name(b.Version, b.OS, b.Arch)
	want := list.Sum(name)
	if want == "" {
		return "", fail(exitFailure, "%s in %s does not name %s", checksums.File, release, name)
	}
	if sum, err = executableSum(); err != nil {
		return "", fail(exitFailure, "this executable cannot be read: %s", err)
	}
	if sum != want {
		return "", fail(exitFailure, "this executable is not the one that was released: its "+
			"SHA-256 is %s, that of %s is %s. Install the release again", sum, name, want)
	}
	return sum, nil
}

func fetch(ctx context.Context, release, name string) ([]byte, error) {
	if !strings.Contains(release, "://") {
		text, err := mapping.ReadText(filepath.Join(release, name), maxChecksums)
		if err != nil {
			return nil, fail(exitFailure, "the checksums cannot be read: %s", err)
		}
		return text, nil
	}
	address := release + "/" + name
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fail(exitUsage, "--from must be a folder or an address, not %q", release)
	}
	answer, err := (&http.Client{Timeout: releaseWait}).Do(request)
	var text []byte
	if err == nil {
		defer answer.Body.Close()
		text, err = io.ReadAll(io.LimitReader(answer.Body, maxChecksums))
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Canceled
	case err != nil:
		return nil, fail(exitFailure, "%s cannot be fetched: %s. Behind a proxy, set HTTPS_PROXY. "+
			"Without a network, bring %s and %s of the release here and give their folder to "+
			"--from", address, hub.Cause(err), checksums.File, checksums.Signature)
	case answer.StatusCode != http.StatusOK:
		return nil, fail(exitFailure, "%s cannot be fetched: HTTP %d. Only releases with signed "+
			"checksums can be verified", address, answer.StatusCode)
	}
	return text, nil
}

func executableSum() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
