/** Dialler and listener of UDP ENC over a network that loses, repeats, delays and forges, with time in the test's hands. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createEncDialler, type EncDialler } from '../../src/channel/enc/dialler.js';
import {
  createEncListener,
  halfOpenMax,
  type EncListener,
  type EncPeer,
  type PeerAddress,
} from '../../src/channel/enc/listener.js';
import { handshakePacket, index, keyIdOf, readPacket } from '../../src/channel/enc/packets.js';
import { createReplayWindow, windowCounters } from '../../src/channel/enc/replay-window.js';
import {
  contentKind,
  createEncSession,
  datagramMaxBytes,
  encParty,
  type EncSession,
} from '../../src/channel/enc/session.js';
import { encTiming } from '../../src/channel/enc/timing.js';
import { initiate } from '../../src/channel/noise/handshake.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { valueOf } from '../support/noise-parties.js';

const hop = generateX25519();
const home: PeerAddress = { address: '192.0.2.1', port: 1000 };
const stepMs = 250;

/** One dialler and one listener. What they send waits in `up` and `down` until `pass` carries it. */
class Net {
  now = 0;
  up: Buffer[] = [];
  down: Buffer[] = [];
  readonly heard: string[] = [];
  readonly answers: string[] = [];
  /** Handshakes that were given back. */
  readonly refused: Buffer[] = [];
  readonly peers = new Set<EncPeer<string>>();
  from = home;
  /** Whether the listener's owner has no room. */
  refuses = false;
  ready = 0;
  dead = false;
  listener = this.listen();
  readonly dialler: EncDialler;

  constructor(publicKey = hop.publicKey) {
    this.dialler = createEncDialler({
      publicKey,
      transmit: (packet) => this.up.push(packet),
      deliver: (datagram) => this.answers.push(datagram.toString()),
      ready: () => (this.ready += 1),
      now: 0,
    });
  }
  listen(): EncListener<string> {
    const listener = createEncListener<string>({
      transmit: (packet) => void this.down.push(packet),
      met: (peer) => {
        if (!this.refuses) this.peers.add(peer);
        return !this.refuses;
      },
      refused: (bytes) => void this.refused.push(bytes),
      deliver: (datagram) => this.heard.push(datagram.toString()),
      now: 0,
    });
    listener.setKeys([{ keys: hop, rule: 'rule' }]);
    return listener;
  }
  /** Carries everything that waits, and what follows from it. */
  pass(): this {
    while (this.up.length + this.down.length > 0) {
      for (const packet of this.up.splice(0)) this.take(packet);
      for (const packet of this.down.splice(0)) this.dialler.take(packet, this.now);
    }
    return this;
  }
  /** What the listener makes of a packet, at once. */
  take(packet: Buffer | undefined, from = this.from): ReturnType<EncListener<string>['take']> {
    const taken = this.listener.take(packet ?? Buffer.alloc(0), from, this.now);
    while (this.listener.answerOne(this.now));
    return taken;
  }
  /** Lets time pass; `carry` says whether the network works meanwhile. */
  wait(ms: number, carry = true): this {
    for (let passed = 0; passed < ms && !this.dead; passed += stepMs) {
      this.now += stepMs;
      this.dead = this.dialler.poll(this.now) === 'dead';
      this.listener.poll(this.now);
      if (carry) this.pass();
      else this.up = this.down = [];
    }
    return this;
  }
  say(text: string): this {
    this.dialler.send(Buffer.from(text), this.now);
    return this;
  }
  get peer(): EncPeer<string> {
    const [peer] = [...this.peers].slice(-1);
    if (peer === undefined) throw new Error('nobody came');
    return peer;
  }
}

/** A session with the listener by hand, past its handshake. */
function sessionWith(net: Net): { readonly session: EncSession } {
  const initiated = valueOf(initiate(encParty({ remoteStatic: hop.publicKey }), Buffer.alloc(0)));
  net.take(handshakePacket(keyIdOf(hop.publicKey), 1, initiated.message));
  const answer = readPacket(net.down.splice(0)[0] ?? Buffer.alloc(0));
  if (answer?.kind !== 'answer') throw new Error('no answer');
  const indexes = { own: 1, peer: answer.sender };
  return { session: createEncSession(valueOf(initiated.finish(answer.message)), indexes, net.now) };
}

describe('a dialler and a listener', () => {
  it('exchange datagrams of any length both ways, empty ones too', () => {
    const net = new Net().pass().say('question').say('').pass();
    expect(net.ready).toBe(1);
    expect(net.heard).toEqual(['question', '']);
    expect([net.peer.send(Buffer.from('answer'), 0), net.peer.send(Buffer.alloc(0), 0)]).toEqual([true, true]);
    net.pass();
    expect(net.answers).toEqual(['answer', '']);
    expect(net.dialler.send(Buffer.alloc(datagramMaxBytes), 0)).toBe(true);
    expect(net.up[0]?.length).toBe(65_507);
    expect(net.dialler.send(Buffer.alloc(datagramMaxBytes + 1), 0)).toBe(false);
  });

  it('tell the shape of their packets from any other datagram', () => {
    const net = new Net();
    const take = (bytes: Buffer) => net.take(bytes);
    for (const text of ['', 'x', '\u0001', '\u0003'.repeat(40)]) expect(take(Buffer.from(text))).toBe('other');
    const other = generateX25519().publicKey;
    const message = valueOf(initiate(encParty({ remoteStatic: other }), Buffer.alloc(0))).message;
    expect(take(handshakePacket(keyIdOf(other), 1, message))).toBe('other');
    const handshake = handshakePacket(keyIdOf(hop.publicKey), 1, message);
    expect(take(handshake)).toBe('waits');
    expect(net.down).toEqual([]);
    expect(net.refused).toEqual([handshake]);
  });

  it('answer no handshake with more bytes than it had', () => {
    const net = new Net();
    const [asked] = net.up;
    net.take(asked);
    expect([asked?.length, net.down[0]?.length]).toEqual([61, 57]);
  });

  it('deliver each datagram at most once, in any order, whatever is lost, repeated or changed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ drop: fc.boolean(), repeat: fc.nat(2), spoil: fc.boolean(), jump: fc.nat() }), {
          minLength: 1,
          maxLength: 40,
        }),
        (fates) => {
          const net = new Net().pass();
          fates.forEach((_fate, number) => net.say(`d${number}`));
          const sent = net.up.splice(0);
          const arriving = sent.flatMap((packet, number) => {
            const fate = fates[number];
            if (fate === undefined || fate.drop) return [];
            const copies = Array.from({ length: 1 + fate.repeat }, () => ({ number, packet, at: fate.jump }));
            if (!fate.spoil) return copies;
            const spoilt = Buffer.from(packet);
            spoilt[fate.jump % spoilt.length] = (spoilt[fate.jump % spoilt.length] ?? 0) ^ 1;
            return [...copies, { number: -1, packet: spoilt, at: fate.jump }];
          });
          const order = arriving.toSorted((a, b) => a.at - b.at);
          for (const { packet } of order) net.listener.take(packet, home, 0);
          const expected = [...new Set(order.map(({ number }) => number).filter((number) => number >= 0))];
          expect(net.heard).toEqual(expected.map((number) => `d${number}`));
        },
      ),
    );
  });

  it('shake hands again when the network loses that, and give up after five tries', () => {
    const late = new Net().wait(3_000, false).wait(1_000);
    expect([late.ready, late.dead]).toEqual([1, false]);
    const lost = new Net().wait(9_750, false);
    expect(lost.dead).toBe(false);
    expect(lost.wait(500, false).dead).toBe(true);
  });

  it('meet by whichever try is answered first, however late, and once', () => {
    const net = new Net().wait(2_000, false);
    // Two more tries, which a busy hop reads late.
    net.up = [];
    for (let passed = 0; passed < 6_000; passed += stepMs) {
      net.now += stepMs;
      net.dialler.poll(net.now);
    }
    const [older, newer] = net.up.splice(0);
    net.take(older);
    net.take(newer);
    net.pass().say('first').pass();
    expect([net.ready, net.heard, net.peers.size]).toEqual([1, ['first'], 1]);
    // Nobody holds the session of the other answer.
    expect(net.listener.halfOpen).toBe(1);
  });

  it('lose no time on handshakes whose dialler has tried again', () => {
    const net = new Net();
    const [asked] = net.up.splice(0);
    for (let more = 0; more < 5_000; more += 1) net.listener.take(asked!, home, 0);
    net.now = encTiming.handshakeStaleMs + 1;
    net.listener.take(asked!, home, net.now);
    // All but the newest are too old; the listener keeps a bounded number of them anyway.
    expect(net.listener.answerOne(net.now)).toBe(false);
    expect(net.listener.halfOpen).toBe(1);
    for (let more = 0; more < 5_000; more += 1) net.listener.take(asked!, home, net.now);
    let answered = 0;
    for (let more = true; more; answered += 1) more = net.listener.answerOne(net.now);
    expect(answered).toBe(halfOpenMax);
  });

  it('give up at once on a key with which nothing can be agreed', () => {
    expect(new Net(Buffer.alloc(32)).wait(stepMs).dead).toBe(true);
  });

  it('change keys while datagrams pass, and neither side loses one', () => {
    const net = new Net().pass().say('first').pass();
    const { peer } = net;
    const before = net.listener.halfOpen;
    for (let at = 0; at < 3 * encTiming.rekeyAfterMs; at += 30_000) {
      net.say(`up ${at}`);
      peer.send(Buffer.from(`down ${at}`), net.now);
      net.wait(30_000);
    }
    expect([net.heard.length, net.answers.length, net.peers.size]).toEqual([61, 60, 1]);
    expect([net.listener.halfOpen, before]).toEqual([0, 0]);
  });

  it('take packets of the last session that come late, for ten seconds', () => {
    const net = new Net().pass().say('first').pass();
    net.say('late').say('too late');
    const [late, tooLate] = net.up.splice(0);
    net.wait(encTiming.rekeyAfterMs - 1_000);
    net.peer.send(Buffer.from('late down'), net.now);
    const [lateDown] = net.down.splice(0);
    net.wait(2_000).say('new').pass();
    expect(net.listener.take(late ?? Buffer.alloc(0), home, net.now)).toBe('taken');
    net.dialler.take(lateDown ?? Buffer.alloc(0), net.now);
    net.wait(encTiming.overlapMs + 1_000);
    expect(net.listener.take(tooLate ?? Buffer.alloc(0), home, net.now)).toBe('other');
    expect([net.heard, net.answers]).toEqual([['first', 'new', 'late'], ['late down']]);
  });

  it('end a session that was not replaced in time', () => {
    const net = new Net().pass().say('first').pass();
    const { peer } = net;
    // Until the dialler knows that it was heard: without an answer it would shake hands anew.
    net.wait(6_000).wait(encTiming.refuseAfterMs - 7_000, false);
    expect([net.dead, peer.send(Buffer.from('x'), net.now)]).toEqual([false, true]);
    net.wait(2_000, false);
    expect([net.dead, peer.send(Buffer.from('x'), net.now)]).toEqual([true, false]);
  });

  it('meet again within ten seconds when the listener has forgotten everything', () => {
    const net = new Net().pass().say('first').pass();
    net.listener = net.listen();
    let waited = 0;
    for (; !net.heard.includes('again') && waited < 20_000; waited += stepMs) net.say('again').wait(stepMs);
    expect(waited).toBeLessThanOrEqual(10_000);
  });

  it('meet with the first packet, whatever is in it: the owner of the listener knows of every session that lasts', () => {
    const net = new Net().pass();
    expect([net.heard, net.peers.size, net.listener.halfOpen]).toEqual([[], 1, 0]);
    net.peer.close();
    expect(net.listener.take(net.say('late').up[0] ?? Buffer.alloc(0), home, net.now)).toBe('other');
  });

  it('part at once when the owner of the listener has no room', () => {
    const net = new Net();
    net.refuses = true;
    const [refused] = net.pass().say('one').up;
    expect(net.listener.take(refused ?? Buffer.alloc(0), home, net.now)).toBe('other');
    expect([net.heard, net.peers.size]).toEqual([[], 0]);
  });

  it('need no answers: a listener that only listens is asked now and then, and is not met anew', () => {
    const net = new Net().pass();
    for (let sent = 0; sent < 60; sent += 1) net.say(`log line ${sent}`).wait(1_000);
    expect([net.heard.length, net.peers.size, net.dead]).toEqual([60, 1, false]);
  });

  it('follow a dialler to a new address, by its newest datagram only', () => {
    const net = new Net().pass().say('first').pass();
    const moved = { address: '192.0.2.2', port: 2000 };
    net.say('second').say('third');
    const [second, third] = net.up.splice(0);
    net.listener.take(third ?? Buffer.alloc(0), moved, 0);
    net.listener.take(second ?? Buffer.alloc(0), home, 0);
    expect(net.peer.address).toEqual(moved);
    const forged = Buffer.from(third ?? []);
    forged[forged.length - 1] = (forged[forged.length - 1] ?? 0) ^ 1;
    forged.writeBigUInt64BE(1000n, 5);
    expect(net.listener.take(forged, home, 0)).toBe('dropped');
    expect(net.peer.address).toEqual(moved);
  });

  it('keep flows when the key of the hop changes, and rekey them with the old one', () => {
    const net = new Net().pass().say('first').pass();
    net.listener.setKeys([{ keys: generateX25519(), rule: 'rule' }]);
    net
      .wait(encTiming.rekeyAfterMs + 1_000)
      .wait(encTiming.rekeyAfterMs)
      .say('still')
      .pass();
    expect([net.heard, net.peers.size]).toEqual([['first', 'still'], 1]);
    const stranger = new Net();
    stranger.listener.setKeys([{ keys: generateX25519(), rule: 'rule' }]);
    expect(stranger.pass().ready).toBe(0);
  });

  it('hold a bounded number of handshakes that nothing follows, for ten seconds, and answer a bounded number a second', () => {
    const net = new Net();
    const handshake = (): Buffer =>
      handshakePacket(
        keyIdOf(hop.publicKey),
        7,
        valueOf(initiate(encParty({ remoteStatic: hop.publicKey }), Buffer.alloc(0))).message,
      );
    const one = handshake();
    for (let sent = 0; sent < 1_500; sent += 1) net.take(one);
    expect(net.listener.halfOpen).toBe(1_000);
    for (let second = 0; second < 9; second += 1) {
      net.now += 1_000;
      for (let sent = 0; sent < 600; sent += 1) net.take(one);
    }
    expect(net.listener.halfOpen).toBe(halfOpenMax);
    net.listener.poll(net.now + encTiming.halfOpenMs);
    expect(net.listener.halfOpen).toBe(0);
  });

  it('are not kept busy by rekeys: they count as handshakes', () => {
    const net = new Net().pass();
    const { session } = sessionWith(net);
    const { message } = valueOf(initiate(encParty({ remoteStatic: hop.publicKey }), Buffer.alloc(0)));
    const rekey = Buffer.concat([index(7), message]);
    for (let sent = 0; sent < 1_500; sent += 1)
      net.listener.take(session.seal(contentKind.rekey, rekey, net.now) ?? Buffer.alloc(0), home, net.now);
    // Two handshakes were answered before.
    expect(net.down.length).toBe(998);
  });

  it('survive anything that anybody sends', () => {
    const net = new Net().pass().say('first').pass();
    for (let round = 0; round < 2_000; round += 1) {
      const junk = randomBytes(round % 80);
      if (junk.length > 0) junk[0] = 1 + (round % 3);
      net.listener.take(junk, home, 0);
      net.dialler.take(junk, 0);
    }
    net.say('second').pass();
    expect(net.heard).toEqual(['first', 'second']);
  });
});

describe('the replay window', () => {
  it('accepts each counter once, and none that is too old, as a set would tell', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3 * windowCounters), { maxLength: 300 }), (counters) => {
        const window = createReplayWindow();
        const seen = new Set<number>();
        let highest = -1;
        for (const counter of counters) {
          const expected = !seen.has(counter) && counter > highest - windowCounters;
          expect(window.accepts(counter)).toBe(expected);
          if (!expected) continue;
          expect(window.note(counter)).toBe(counter > highest);
          seen.add(counter);
          highest = Math.max(highest, counter);
        }
      }),
    );
  });
});
