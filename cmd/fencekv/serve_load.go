package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

const envPrefix = "FENCEKV_"

// loadServeConfig puts the configuration together: a flag before its variable
// in the environment, and that before its key in the file.
func loadServeConfig(flags *pflag.FlagSet, environ []string) (serveConfig, error) {
	var cfg serveConfig
	environment := env.Provider("/", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		// Other variables of ours are the client's.
		TransformFunc: func(name, value string) (string, any) {
			flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-")
			if flags.Lookup(flag) == nil {
				return "", nil
			}
			return flag, value
		},
	})
	k := koanf.New("/") // a delimiter no name holds: one level of keys
	if err := k.Load(environment, nil); err != nil {
		return cfg, fmt.Errorf("read environment: %w", err)
	}
	path := k.String("config")
	if given := flags.Lookup("config"); given.Changed {
		path = given.Value.String()
	}
	k = koanf.New("/")
	if path != "" {
		if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
			return cfg, fmt.Errorf("read --config %s: %w", path, err)
		}
		for name := range k.Raw() {
			if name == "config" || flags.Lookup(name) == nil {
				return cfg, fmt.Errorf("--config %s: %q is no setting of serve", path, name)
			}
		}
	}
	if err := k.Load(environment, nil); err != nil {
		return cfg, fmt.Errorf("read environment: %w", err)
	}
	given := func(flag string) bool { return k.Exists(flag) || flags.Changed(flag) }
	decided := slices.DeleteFunc(slices.Clone(clusterWide[:]), func(flag string) bool { return !given(flag) })
	if err := k.Load(posflag.Provider(flags, "/", k), nil); err != nil {
		return cfg, fmt.Errorf("read flags: %w", err)
	}
	k.Delete("config")
	k.Delete("help")
	if err := k.UnmarshalWithConf("", &cfg, koanf.UnmarshalConf{DecoderConfig: decoder()}); err != nil {
		return cfg, fmt.Errorf("read settings: %w", err)
	}
	cfg.complete(func(flag string) bool { return slices.Contains(decided, flag) })
	return cfg, cfg.validate()
}

// decoder refuses what does not fit: no number is taken for a
// truth, and none for a time without its unit.
func decoder() *mapstructure.DecoderConfig {
	return &mapstructure.DecoderConfig{
		TagName:     "koanf",
		ErrorUnused: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			parsePeers,
			mapstructure.StringToTimeDurationHookFunc(),
			needUnit,
			mapstructure.StringToBasicTypeHookFunc(),
		),
	}
}

func needUnit(from, to reflect.Type, data any) (any, error) {
	duration := reflect.TypeFor[time.Duration]()
	if to == duration && from != duration {
		return nil, fmt.Errorf("%v needs a unit, like 10ms", data)
	}
	return data, nil
}

// parsePeers reads n1=http://…,n2=http://…
func parsePeers(from, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok || to != reflect.TypeFor[map[string]string]() {
		return data, nil
	}
	peers := map[string]string{}
	if strings.TrimSpace(text) == "" {
		return peers, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, address, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || name == "" || address == "" {
			return nil, fmt.Errorf("%q must be name=URL", pair)
		}
		if _, twice := peers[name]; twice {
			return nil, fmt.Errorf("%s stands twice", name)
		}
		peers[name] = strings.TrimSuffix(address, "/")
	}
	return peers, nil
}
