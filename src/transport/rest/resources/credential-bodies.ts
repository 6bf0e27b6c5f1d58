/**
 * The bodies of requests about credentials. Their fields depend on the type; an update does not state the type, so all its fields
 * must belong to one. Implements `docs/contract/rest.md#credentials`.
 */
import { z } from 'zod';
import type { CredentialChanges, NewCredential } from '../../../commands/handlers-port.js';
import {
  keyTypes,
  fieldsOfKeyType,
  namesOfSelfSigned,
  type CredentialState,
} from '../../../domain/credential/credential.js';
import { pick } from '../../../domain/resource/lifecycle.js';
import { unreachable } from '../../../kernel/errors.js';
import type { JsonObject } from '../../../kernel/json.js';
import { canonicalNamePattern } from '../../../kernel/addresses.js';
import { limits } from '../../../kernel/limits.js';
import {
  base64,
  body,
  distinct,
  dnsName,
  host,
  integer,
  name,
  namePattern,
  object,
  port,
  shortId,
  text,
  uuid,
} from '../schemas/fields.js';
import { documented, sample } from '../schemas/documented.js';
import { expected } from '../schemas/validation.js';

/** Bound of a common name (RFC 5280, ub-common-name). */
const commonNameChars = 64;
/** Longest validity of a self-signed certificate. */
const selfSignedDaysMax = 36_500;

const privateKey = documented(
  base64(32, 'base64url').nullable(),
  'Private key of 32 bytes in base64url; absent at the create, or null: a new one is generated',
  null,
);

const pem = text(1, limits.rest.pemChars);

const selfSigned = object({
  common_name: documented(text(1, commonNameChars), 'Common name of subject and issuer', 'app.example'),
  subject_alt_names: documented(
    distinct(namePattern).optional(),
    'DNS names that it is valid for; the common name when there are none',
    ['app.example', '*.app.example'],
  ),
  days: documented(
    integer(1, selfSignedDaysMax).optional(),
    `How long it is valid; default \`${limits.rest.selfSignedDaysDefault}\``,
    90,
  ),
})
  .superRefine(({ common_name, subject_alt_names = [] }, ctx) => {
    if (subject_alt_names.length > 0 || canonicalNamePattern(common_name) !== undefined) return;
    const message = 'expected a DNS name, because there are no subject_alt_names';
    ctx.addIssue({ code: 'custom', path: ['common_name'], message });
  })
  .meta({ id: 'SelfSigned', description: 'A certificate and key that the service generates' });

const x25519 = { private_key: privateKey };
/** Descriptions of fields that requests and answers share. */
export const about = {
  x25519_credential_id: 'Key pair of a `reality` credential',
  server_names: 'Names that a `reality` credential answers to; the first one is dialled',
  short_ids:
    'Short ids that a `reality` credential accepts, hexadecimal of an even number of digits; the first one is dialled',
  target_host: 'Host that the others are passed on to, for `reality`',
  target_port: 'Its port',
};
const reality = {
  x25519_credential_id: documented(uuid, about.x25519_credential_id, sample.keyPair),
  server_names: documented(distinct(dnsName, 1), about.server_names, ['app.example']),
  short_ids: documented(distinct(shortId, 1, 'short id'), about.short_ids, ['0a1b2c3d']),
  target_host: documented(host, about.target_host, 'www.example'),
  target_port: documented(port, about.target_port, 443),
};
const tls = {
  certificate_pem: documented(pem, 'Certificate, which may be followed by its chain', sample.pem),
  private_key_pem: documented(pem, 'Private key of the certificate', sample.pemKey),
  self_signed: documented(selfSigned, 'In place of both: the service makes them'),
};
const newName = documented(name, 'Name, unique among credentials', 'app');

type Sent = { readonly [F in keyof (typeof x25519 & typeof reality & typeof tls)]?: unknown };

/** A certificate is either uploaded with its key or self-signed. */
function checkTls(sent: Sent, ctx: z.core.$RefinementCtx): void {
  const issue = (field: keyof Sent, message: string): void =>
    void ctx.addIssue({ code: 'custom', path: [field], message });
  const { certificate_pem, private_key_pem, self_signed } = sent;
  if (self_signed !== undefined) {
    if (certificate_pem !== undefined) issue('certificate_pem', 'expected none beside self_signed');
    if (private_key_pem !== undefined) issue('private_key_pem', 'expected none beside self_signed');
  } else if (private_key_pem !== undefined && certificate_pem === undefined) {
    issue('certificate_pem', 'required, expected the certificate of private_key_pem');
  }
}

const createBody: z.ZodType<NewCredential> = z
  .discriminatedUnion(
    'key_type',
    [
      body({
        name: newName,
        key_type: documented(z.literal('x25519'), 'A key pair'),
        private_key: privateKey.optional(),
      }).meta({
        id: 'NewX25519Credential',
        description: 'A key pair, generated if no key is given',
        examples: [{ name: 'reality keys', key_type: 'x25519' }],
      }),
      body({
        name: newName,
        key_type: documented(z.literal('reality'), 'Parameters of REALITY'),
        ...reality,
      }).meta({ id: 'NewRealityCredential', description: 'Parameters of REALITY' }),
      body({
        name: newName,
        key_type: documented(z.literal('tls_cert'), 'A certificate with its key'),
        ...partial(tls),
      })
        .superRefine((sent, ctx) => {
          checkTls(sent, ctx);
          if (sent.self_signed !== undefined) return;
          if (sent.certificate_pem === undefined && sent.private_key_pem === undefined) {
            const message = 'required, expected PEM certificates, or self_signed instead';
            ctx.addIssue({ code: 'custom', path: ['certificate_pem'], message });
          } else if (sent.private_key_pem === undefined) {
            const message = 'required, expected the PEM key of certificate_pem';
            ctx.addIssue({ code: 'custom', path: ['private_key_pem'], message });
          }
        })
        .meta({
          id: 'NewTlsCredential',
          description: 'A certificate with its key, either uploaded or generated by the service',
          examples: [{ name: 'app', key_type: 'tls_cert', self_signed: { common_name: 'app.example', days: 90 } }],
        }),
    ],
    { error: expected(`an object with key_type ${keyTypes.map((type) => `"${type}"`).join(' or ')}`) },
  )
  .meta({ id: 'NewCredential', description: 'A credential of one of the types' });

/** Secrets that a document omits are kept. Whether there is one to keep is checked against the fleet. */
export const fileBody = z
  .discriminatedUnion(
    'key_type',
    [
      body({ name: newName, key_type: z.literal('x25519'), private_key: privateKey.optional() }),
      body({ name: newName, key_type: z.literal('reality'), ...reality }),
      body({ name: newName, key_type: z.literal('tls_cert'), ...partial(tls) }).superRefine((sent, ctx) => {
        checkTls(sent, ctx);
        if (sent.self_signed !== undefined || sent.certificate_pem !== undefined) return;
        const message = 'required, expected PEM certificates, or self_signed instead';
        if (sent.private_key_pem === undefined) ctx.addIssue({ code: 'custom', path: ['certificate_pem'], message });
      }),
    ],
    { error: expected(`an object with key_type ${keyTypes.map((type) => `"${type}"`).join(' or ')}`) },
  )
  .meta({ description: 'A credential of a document' });

/** The fields of a credential in a fleet document, without secrets; of a self-signed certificate, its parameters. */
export function credentialInFile(state: object): JsonObject {
  const { key_type, certificate, certificate_pem, ...fields } = state as CredentialState;
  switch (key_type) {
    case 'x25519':
      return { key_type };
    case 'reality':
      return { key_type, ...(pick(fields, fieldsOfKeyType.reality) as JsonObject) };
    case 'tls_cert': {
      const names = certificate === null ? undefined : namesOfSelfSigned(certificate);
      if (names === undefined) return { key_type, certificate_pem };
      const { common_name, subject_alt_names } = names;
      const only = subject_alt_names.length === 1 && subject_alt_names[0] === common_name;
      return { key_type, self_signed: only ? { common_name } : { common_name, subject_alt_names } };
    }
    default:
      return unreachable(key_type);
  }
}

const updateBody: z.ZodType<CredentialChanges> = body({
  name: newName.optional(),
  ...partial(x25519),
  ...partial(reality),
  ...partial(tls),
})
  .superRefine((sent, ctx) => {
    const groups = [x25519, reality, tls].map((fields) =>
      Object.keys(fields).filter((field) => Reflect.has(sent, field)),
    );
    const [[first] = [], [other] = []] = groups.filter((fields) => fields.length > 0);
    if (first !== undefined && other !== undefined) {
      const message = `expected fields of one key_type, ${first} is one of another`;
      ctx.addIssue({ code: 'custom', path: [other], message });
    }
    checkTls(sent, ctx);
  })
  .meta({
    id: 'CredentialChanges',
    description: 'Changes of a credential: `name` and the fields of its type. Omitted fields stay',
    examples: [{ name: 'app', certificate_pem: sample.pem, private_key_pem: sample.pemKey }],
  });

export const credentialBodies = { create: createBody, update: updateBody };

/** The same fields, all optional. */
function partial<S extends { readonly [field: string]: z.ZodType }>(
  fields: S,
): { readonly [F in keyof S]: z.ZodOptional<S[F]> } {
  return Object.fromEntries(Object.entries(fields).map(([field, schema]) => [field, schema.optional()])) as {
    readonly [F in keyof S]: z.ZodOptional<S[F]>;
  };
}
