import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { initiate, respond } from '../../src/channel/noise/handshake.js';
import {
  oracleDecrypt,
  oracleEncrypt,
  oracleInitiate,
  oracleRespond,
  type OracleParty,
} from '../support/noise-oracle.js';
import { handshakeParties, valueOf, type FullParty } from '../support/noise-parties.js';

const oracleSide = (party: FullParty): OracleParty => ({
  prologue: party.prologue,
  psk: party.psk,
  staticPrivate: party.localStatic.privateKey,
  remoteStatic: party.remoteStatic,
  ephemeralPrivate: randomBytes(32),
});
const plain = (bytes: Uint8Array): number[] => [...bytes];

describe('a session with a second implementation of KKpsk0', () => {
  it('works between our agent and its service', () => {
    const { agent, service } = handshakeParties();
    const opened = valueOf(initiate(agent, Buffer.from('offer')));
    const answering = oracleRespond(oracleSide(service), opened.message);
    expect(Buffer.from(answering.payload).toString()).toBe('offer');
    const theirs = answering.finish(Buffer.from('grant'));
    const ours = valueOf(opened.finish(theirs.message));
    expect(Buffer.from(ours.payload).toString()).toBe('grant');
    expect(plain(ours.handshakeHash)).toEqual(plain(theirs.hash));
    for (let sequence = 0; sequence < 20; sequence += 1) {
      const up = randomBytes(sequence * 37);
      const sent = valueOf(ours.send.encrypt(sequence, up));
      expect(plain(oracleDecrypt(theirs.initiatorToResponder, BigInt(sequence), sent))).toEqual(plain(up));
      const down = oracleEncrypt(theirs.responderToInitiator, BigInt(sequence), up);
      expect(plain(valueOf(ours.receive.decrypt(BigInt(sequence), down)))).toEqual(plain(up));
    }
  });

  it('works between its agent and our service', () => {
    const { agent, service } = handshakeParties();
    const opened = oracleInitiate(oracleSide(agent), Buffer.from('offer'));
    const answering = valueOf(respond(service, opened.message));
    expect(Buffer.from(answering.payload).toString()).toBe('offer');
    const ours = valueOf(answering.finish(Buffer.from('grant')));
    const theirs = opened.finish(ours.message);
    expect(Buffer.from(theirs.payload).toString()).toBe('grant');
    expect(plain(ours.handshakeHash)).toEqual(plain(theirs.hash));
    for (let sequence = 0; sequence < 20; sequence += 1) {
      const data = randomBytes(sequence * 41);
      const up = oracleEncrypt(theirs.initiatorToResponder, BigInt(sequence), data);
      expect(plain(valueOf(ours.receive.decrypt(sequence, up)))).toEqual(plain(data));
      const sent = valueOf(ours.send.encrypt(sequence, data));
      expect(plain(oracleDecrypt(theirs.responderToInitiator, BigInt(sequence), sent))).toEqual(plain(data));
    }
  });
});
