package main

import (
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/chacha20poly1305"
)

// Noise_NK_25519_ChaChaPoly_SHA256 (Noise, revision 34): <- s, then -> e, es, then <- e, ee. Both payloads are empty.
const protocolName = "Noise_NK_25519_ChaChaPoly_SHA256"
const prologue = "svc-enc-v1"

// The state of a handshake. The name of the protocol has as many bytes as a hash, so it is the first one itself.
type handshake struct {
	chaining, hash []byte
	key            []byte
	ephemeral      *ecdh.PrivateKey
}

func newHandshake(hopPublic []byte) *handshake {
	state := &handshake{chaining: []byte(protocolName), hash: []byte(protocolName)}
	state.mixHash([]byte(prologue))
	state.mixHash(hopPublic)
	return state
}

func (state *handshake) mixHash(data []byte) {
	sum := sha256.Sum256(append(append([]byte{}, state.hash...), data...))
	state.hash = sum[:]
}

// Noise's HKDF with two outputs.
func twoKeys(chaining, input []byte) ([]byte, []byte) {
	temporary := mac(chaining, input)
	first := mac(temporary, []byte{1})
	return first, mac(temporary, append(append([]byte{}, first...), 2))
}

func mac(key, data []byte) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write(data)
	return sum.Sum(nil)
}

func (state *handshake) mixKey(own *ecdh.PrivateKey, other []byte) error {
	shared, err := agree(own, other)
	if err == nil {
		state.chaining, state.key = twoKeys(state.chaining, shared)
	}
	return err
}

func agree(own *ecdh.PrivateKey, other []byte) ([]byte, error) {
	public, err := ecdh.X25519().NewPublicKey(other)
	if err != nil {
		return nil, err
	}
	return own.ECDH(public)
}

// The tag of an empty payload. Each key of the handshake seals once, so its nonce is zero.
func (state *handshake) sealNothing() []byte {
	sealed := aeadOf(state.key).Seal(nil, nonceOf(0), nil, state.hash)
	state.mixHash(sealed)
	return sealed
}

func (state *handshake) openNothing(sealed []byte) error {
	if _, err := aeadOf(state.key).Open(nil, nonceOf(0), sealed, state.hash); err != nil {
		return err
	}
	state.mixHash(sealed)
	return nil
}

// The keys of both directions: of the dialler, and of the hop.
func (state *handshake) split() (cipher.AEAD, cipher.AEAD) {
	first, second := twoKeys(state.chaining, nil)
	return aeadOf(first), aeadOf(second)
}

const messageBytes = 48

// The dialler's first message. ephemeral is fixed by vectors alone.
func (state *handshake) first(hopPublic []byte, ephemeral *ecdh.PrivateKey) []byte {
	state.ephemeral = ephemeral
	public := ephemeral.PublicKey().Bytes()
	state.mixHash(public)
	if err := state.mixKey(ephemeral, hopPublic); err != nil {
		fail(err)
	}
	return append(public, state.sealNothing()...)
}

// What the hop answers to the first message.
func (state *handshake) second(hop, ephemeral *ecdh.PrivateKey, message []byte) ([]byte, error) {
	if len(message) != messageBytes {
		return nil, errors.New("a message of another length")
	}
	state.mixHash(message[:32])
	if err := state.mixKey(hop, message[:32]); err != nil {
		return nil, err
	}
	if err := state.openNothing(message[32:]); err != nil {
		return nil, err
	}
	public := ephemeral.PublicKey().Bytes()
	state.mixHash(public)
	if err := state.mixKey(ephemeral, message[:32]); err != nil {
		return nil, err
	}
	return append(public, state.sealNothing()...), nil
}

// What the dialler makes of the answer.
func (state *handshake) finish(message []byte) error {
	if len(message) != messageBytes {
		return errors.New("a message of another length")
	}
	state.mixHash(message[:32])
	if err := state.mixKey(state.ephemeral, message[:32]); err != nil {
		return err
	}
	return state.openNothing(message[32:])
}

func newKey() *ecdh.PrivateKey {
	return must(ecdh.X25519().GenerateKey(rand.Reader))
}

func privateKey(bytes []byte) *ecdh.PrivateKey {
	return must(ecdh.X25519().NewPrivateKey(bytes))
}

func aeadOf(key []byte) cipher.AEAD {
	return must(chacha20poly1305.New(key))
}

// Noise's nonce of ChaChaPoly: four zeros, then the counter with its lowest byte first.
func nonceOf(counter uint64) []byte {
	nonce := make([]byte, 12)
	binary.LittleEndian.PutUint64(nonce[4:], counter)
	return nonce
}
