package main

import (
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// The first byte of a packet.
const (
	handshakePacket = 1
	answerPacket    = 2
	transportPacket = 3
)

// The first byte inside a transport packet.
const (
	kindDatagram    = 0
	kindPing        = 1
	kindPong        = 2
	kindRekey       = 3
	kindRekeyAnswer = 4
)

const (
	headerBytes    = 13
	answerBytes    = 1 + 4 + 4 + messageBytes
	handshakeBytes = 1 + 8 + 4 + messageBytes
	windowPackets  = 2048
)

func keyId(hopPublic []byte) []byte {
	sum := sha256.Sum256(append([]byte("svc-enc-v1 key"), hopPublic...))
	return sum[:8]
}

func joined(parts ...[]byte) (all []byte) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func newIndex() []byte {
	index := make([]byte, 4)
	must(rand.Read(index))
	return index
}

// One session, of either side.
type session struct {
	own, peer     []byte
	send, receive cipher.AEAD
	next          uint64
	seen          map[uint64]bool
	highest       uint64
}

func newSession(own, peer []byte, send, receive cipher.AEAD) *session {
	return &session{own: own, peer: peer, send: send, receive: receive, seen: map[uint64]bool{}}
}

func (of *session) sealAt(counter uint64, kind byte, content []byte) []byte {
	header := binary.BigEndian.AppendUint64(joined([]byte{transportPacket}, of.peer), counter)
	return of.send.Seal(header, nonceOf(counter), joined([]byte{kind}, content), nil)
}

func (of *session) seal(kind byte, content []byte) []byte {
	of.next++
	return of.sealAt(of.next-1, kind, content)
}

// Opens a transport packet of this session. newest says whether its counter is the highest so far.
func (of *session) open(packet []byte) (kind byte, content []byte, newest, ok bool) {
	counter := binary.BigEndian.Uint64(packet[5:headerBytes])
	if of.seen[counter] || counter+windowPackets <= of.highest {
		return 0, nil, false, false
	}
	plain, err := of.receive.Open(nil, nonceOf(counter), packet[headerBytes:], nil)
	if err != nil || len(plain) == 0 {
		return 0, nil, false, false
	}
	newest = len(of.seen) == 0 || counter > of.highest
	if newest {
		of.highest = counter
	}
	of.seen[counter] = true
	return plain[0], plain[1:], newest, true
}

// The hop's session for a first message, and its answer; nil for a message that was not made for its key.
func answerTo(hop *ecdh.PrivateKey, dialler, message []byte) (*session, []byte) {
	state := newHandshake(hop.PublicKey().Bytes())
	answer, err := state.second(hop, newKey(), message)
	if err != nil {
		return nil, nil
	}
	receive, send := state.split()
	return newSession(newIndex(), dialler, send, receive), answer
}
