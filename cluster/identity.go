package cluster

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/raft"
)

const (
	identityFile    = "identity.json"
	identityFormat  = 1
	identityMaxSize = 4096
	instanceIDSize  = 16 // bytes, written as hex
	maxClusterID    = 128
)

// Identity says which node a data directory is. A node whose directory is lost comes back under the same name
// with another instance ID, so raft takes it for a new server: a wiped voter that votes again under its old ID
// loses acknowledged writes.
type Identity struct {
	Format     int    `json:"format"`     // of identity.json, 1
	Name       string `json:"name"`       // chosen by the operator, see CheckNodeName
	InstanceID string `json:"instanceId"` // 32 hex digits, random, made with the directory
	ClusterID  string `json:"clusterId"`  // empty until the node has joined or formed a cluster
}

// identityRecord is the content of identity.json: one line of JSON, with the CRC32C (Castagnoli), in hex, of the
// same line with an empty crc32c.
type identityRecord struct {
	Identity
	CRC32C string `json:"crc32c"`
}

// ServerID is the node's name and instance ID as raft knows it: name-instance.
func (id Identity) ServerID() raft.ServerID {
	return raft.ServerID(id.Name + "-" + id.InstanceID)
}

// NameOf returns the node name in a server ID made by Identity.ServerID. Instance IDs hold no dash, names may.
func NameOf(id raft.ServerID) string {
	if dash := strings.LastIndexByte(string(id), '-'); dash >= 0 {
		return string(id[:dash])
	}
	return string(id)
}

// CheckNodeName refuses names other than 1 to 32 lower-case letters, digits and inner dashes:
// ^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$
func CheckNodeName(name string) error {
	foreign := strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	if len(name) < 1 || len(name) > 32 || foreign || name[0] == '-' || name[len(name)-1] == '-' {
		return fmt.Errorf("node name is %.64q, want 1 to 32 of a-z, 0-9 and inner dashes", name)
	}
	return nil
}

// LoadOrCreateIdentity reads the identity of the data directory dir, or makes one when dir holds no raft state.
// It refuses a directory of another name, one with raft state but no identity, a damaged file (ErrDamaged), and
// one of a newer format. dir is made with mode 0700 when missing.
func LoadOrCreateIdentity(dir, name string) (*Identity, error) {
	if err := CheckNodeName(name); err != nil {
		return nil, err
	}
	id, err := loadIdentity(dir)
	if errors.Is(err, os.ErrNotExist) {
		return createIdentity(dir, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	if id.Name != name {
		return nil, fmt.Errorf("data directory %s belongs to node %q, not %q", dir, id.Name, name)
	}
	return id, nil
}

// SetClusterID records, durably, which cluster the node belongs to. Setting the same again does nothing; another
// one is refused.
func (id *Identity) SetClusterID(dir, clusterID string) error {
	if clusterID == "" || len(clusterID) > maxClusterID {
		return fmt.Errorf("cluster ID has %d bytes, want 1 to %d", len(clusterID), maxClusterID)
	}
	if id.ClusterID == clusterID {
		return nil
	}
	if id.ClusterID != "" {
		return fmt.Errorf("data directory %s belongs to cluster %q, not %q; %s", dir, id.ClusterID, clusterID, rejoinAdvice)
	}
	next := *id
	next.ClusterID = clusterID
	if err := writeIdentity(dir, next); err != nil {
		return fmt.Errorf("record cluster ID: %w", err)
	}
	*id = next
	return nil
}

func createIdentity(dir, name string) (*Identity, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "raft"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look for raft state: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("data directory %s has raft state but no %s: %s", dir, identityFile, rejoinAdvice)
	}
	if err := makePrivateDir(dir); err != nil {
		return nil, err
	}
	instance := make([]byte, instanceIDSize)
	rand.Read(instance) // never fails: crypto/rand ends the process instead
	id := Identity{Format: identityFormat, Name: name, InstanceID: hex.EncodeToString(instance)}
	if err := writeIdentity(dir, id); err != nil {
		return nil, fmt.Errorf("create identity: %w", err)
	}
	return &id, nil
}

// loadIdentity accepts exactly the bytes that writeIdentity wrote, so that no flipped bit, not even in a space,
// goes unseen.
func loadIdentity(dir string) (*Identity, error) {
	path := filepath.Join(dir, identityFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var record identityRecord
	if len(data) > identityMaxSize || json.Unmarshal(data, &record) != nil {
		return nil, fmt.Errorf("%s is %w; %s", path, ErrDamaged, rejoinAdvice)
	}
	if record.Format > identityFormat {
		return nil, fmt.Errorf("%s has format %d, this build knows %d: upgrade this node", path, record.Format, identityFormat)
	}
	want, err := encodeIdentity(record.Identity)
	if err != nil || !bytes.Equal(data, want) {
		return nil, fmt.Errorf("%s is %w, or was changed by hand; %s", path, ErrDamaged, rejoinAdvice)
	}
	return &record.Identity, nil
}

func encodeIdentity(id Identity) ([]byte, error) {
	record := identityRecord{Identity: id}
	unsigned, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode identity: %w", err)
	}
	record.CRC32C = fmt.Sprintf("%08x", crc32.Checksum(unsigned, crc32.MakeTable(crc32.Castagnoli)))
	line, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode identity: %w", err)
	}
	return append(line, '\n'), nil
}

// writeIdentity replaces the file whole or not at all, whenever the machine stops.
func writeIdentity(dir string, id Identity) error {
	line, err := encodeIdentity(id)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, identityFile)
	if err := writeFileSync(path+".tmp", line); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDir(dir)
}

// writeFileSync writes a file of mode 0600 and makes its content durable; syncDir makes its name durable.
func writeFileSync(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDir makes the names in dir durable: syncing a file does not promise that its name survives a power cut.
func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}
