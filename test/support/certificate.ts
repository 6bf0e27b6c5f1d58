/** A self-signed certificate for 127.0.0.1, made when it is needed, so that no private key lies in the repository. */
import { generateKeyPairSync, sign } from 'node:crypto';
import type { ServedTls } from '../../src/transport/rest/deps.js';

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

/** As REST takes a certificate that is never replaced. */
export const served = ({ cert, key }: Certificate): ServedTls => ({
  current: () => ({ cert, key }),
  onChange: () => () => undefined,
});

const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const length =
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
};
const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const integer = (value: number): Buffer => der(0x02, Buffer.from([value]));
const time = (year: number): Buffer => der(0x18, Buffer.from(`${year}0101000000Z`));
const name = (text: string): Buffer => sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(text)))));
const extension = (id: string, value: Uint8Array): Buffer => sequence(oid(id), der(0x04, value));

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));

/** @param years in which it becomes valid and ends @param dnsNames besides the address */
export function createCertificate(
  subject = 'test',
  years: readonly [number, number] = [2020, 2120],
  dnsNames: readonly string[] = [],
): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const extensions = sequence(
    extension('551d13', sequence(der(0x01, Buffer.from([0xff])))),
    extension(
      '551d11',
      sequence(der(0x87, Buffer.from([127, 0, 0, 1])), ...dnsNames.map((one) => der(0x82, Buffer.from(one)))),
    ),
  );
  const body = sequence(
    der(0xa0, integer(2)),
    integer(1),
    ecdsaWithSha256,
    name(subject),
    sequence(...years.map(time)),
    name(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  const base64 = sequence(body, ecdsaWithSha256, signature).toString('base64');
  const lines = base64.replaceAll(/.{64}/g, '$&\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
