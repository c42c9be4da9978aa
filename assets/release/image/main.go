// Writes the release's OCI image, without a daemon:
//
//	image -out DIR -version V amd64=PROGRAM [arm64=PROGRAM]
//
// DIR becomes an OCI layout, and DIR.tar the same in one file, which podman, docker and skopeo
// load. Each platform has one layer: the static program, the CA certificates (Mozilla's, from
// golang.org/x/crypto), a user without rights, and the cache folder, a volume.
//
// What must stay true: the same programs and version give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	user = 65532 // nonroot, as in other images without a distribution
	home = "/home/ossrun"
	// cache is Hugging Face's folder and ours
	cache = home + "/.cache"
)

func main() {
	out := flag.String("out", "", "folder to write")
	version := flag.String("version", "", "of the program")
	flag.Parse()
	if err := write(*out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(out, version string, platforms []string) error {
	if out == "" || version == "" || len(platforms) == 0 {
		return errors.New("usage: image -out DIR -version V amd64=PROGRAM [arm64=PROGRAM]")
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		arch, program, ok := strings.Cut(p, "=")
		if !ok || arch != "amd64" && arch != "arm64" {
			return fmt.Errorf("%q is not amd64=PROGRAM or arm64=PROGRAM", p)
		}
		image, err := build(arch, program, version)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch},
				Annotations: map[string]string{"org.opencontainers.image.ref.name": version}}})
	}
	if _, err := layout.Write(out, index); err != nil {
		return err
	}
	return pack(out)
}

func build(arch, program, version string) (v1.Image, error) {
	content, err := files(program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: arch, OS: "linux",
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: diffIDs(layer)},
		History: []v1.History{{CreatedBy: "assets/release/image"}},
		Config: v1.Config{
			Entrypoint:   []string{"/ossrun"},
			Cmd:          []string{"serve", "--host", "0.0.0.0"},
			User:         fmt.Sprintf("%d:%d", user, user),
			WorkingDir:   home,
			ExposedPorts: map[string]struct{}{"8000/tcp": {}},
			Volumes:      map[string]struct{}{cache: {}},
			Env: []string{"PATH=/", "HOME=" + home, "OSSRUN_PULL=missing",
				"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
			StopSignal: "SIGTERM",
			Labels: map[string]string{
				"org.opencontainers.image.title":    "ossrun",
				"org.opencontainers.image.version":  version,
				"org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.source":   "https://github.com/ossrun/ossrun",
			},
		},
	})
}

func diffIDs(layer v1.Layer) []v1.Hash {
	id, err := layer.DiffID()
	if err != nil {
		return nil // the image's own check reports it
	}
	return []v1.Hash{id}
}

// files makes the layer: a tar with fixed times, owners and order.
func files(program string) ([]byte, error) {
	body, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil { // trusted conditionally, which a file cannot express
			continue
		}
		if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE",
			Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, f := range []struct {
		name  string
		owner int
		mode  int64
		text  []byte // nil: a folder
	}{
		{"etc/", 0, 0o755, nil},
		{"etc/group", 0, 0o644, fmt.Appendf(nil, "root:x:0:\nossrun:x:%d:\n", user)},
		{"etc/passwd", 0, 0o644, fmt.Appendf(nil, "root:x:0:0::/:/sbin/nologin\n"+
			"ossrun:x:%d:%d::%s:/sbin/nologin\n", user, user, home)},
		{"etc/ssl/", 0, 0o755, nil},
		{"etc/ssl/certs/", 0, 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0, 0o644, certificates.Bytes()},
		{"home/", 0, 0o755, nil},
		{home[1:] + "/", user, 0o711, nil}, // --user can see that no key and no settings are here
		{cache[1:] + "/", user, 0o700, nil},
		{"ossrun", 0, 0o755, body},
		{"tmp/", 0, 0o1777, nil},
	} {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner,
			ModTime: time.Unix(0, 0), Format: tar.FormatPAX, Size: int64(len(f.text)),
			Typeflag: tar.TypeReg}
		if f.text == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.text); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), t.Close()
}

func pack(dir string) error {
	f, err := os.Create(dir + ".tar")
	if err != nil {
		return err
	}
	t := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644,
			ModTime: time.Unix(0, 0), Size: int64(len(body)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err = t.Write(body)
		return err
	})
	return errors.Join(err, t.Close(), f.Close())
}
