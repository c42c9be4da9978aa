// The folder of a tool on this machine: for pictures, and for the files of a container.
//
// What must stay true: it is locked while its tool exists, so that a later start removes only
// folders of killed runs.

package python

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const folderPrefix = "ossrun-python-"

// prepare makes the folders of a tool, and removes the leftovers of killed runs.
func (t *Tool) prepare() (err error) {
	if t.folder != "" {
		return nil
	}
	removeLeftovers()
	folder, err := os.MkdirTemp("", folderPrefix)
	if err == nil {
		t.o.folder = filepath.Join(folder, "data")
		err = errors.Join(os.Mkdir(t.o.folder, 0o700),
			os.Mkdir(filepath.Join(folder, "pictures"), 0o700))
	}
	if err == nil {
		t.lock, err = lockFolder(folder)
	}
	if err != nil {
		return fmt.Errorf("make the folder of the python tool: %w", err)
	}
	t.folder = folder
	return nil
}

// lockGrace is how long a new folder may be without its lock.
const lockGrace = time.Minute

func removeLeftovers() {
	list, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	for _, folder := range list {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || !isOwnedByUser(info) ||
			time.Since(info.ModTime()) < lockGrace {
			continue
		}
		if lock, err := lockFolder(folder); err == nil {
			_ = os.RemoveAll(folder) // a failed removal is retried at the next start
			lock.Close()
		}
	}
}

// maxPictures is bytes of the pictures of one conversation.
const maxPictures = 256 << 20

// picture copies a picture out of the sandbox. A cell may have put anything in its place.
func (t *Tool) picture(name string) (path string, err error) {
	from, err := t.run.data.OpenFile(name, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return "", err
	}
	defer from.Close()
	info, err := from.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a file")
	case t.pictures+info.Size() > maxPictures:
		return "", fmt.Errorf("this conversation's have more than %.1f GB", maxPictures/1e9)
	}
	path = filepath.Join(t.folder, "pictures", name)
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	n, err := io.Copy(to, io.LimitReader(from, info.Size()))
	t.pictures += n
	return path, errors.Join(err, to.Close())
}
