/**
 * The routes of credentials, and their fields in requests and answers. The fields of a body depend on the type; an update does
 * not state the type, so all its fields must belong to one. Implements `docs/contract/rest.md#credentials`.
 */
import { z } from 'zod';
import type { CredentialChanges, NewCredential } from '../../../commands/handlers-port.js';
import {
  keyTypes,
  credentialKey,
  fieldsOfKeyType,
  namesOfSelfSigned,
  type CredentialState,
} from '../../../domain/credential/credential.js';
import { pick } from '../../../domain/resource/lifecycle.js';
import { unreachable } from '../../../kernel/errors.js';
import type { JsonObject } from '../../../kernel/json.js';
import { canonicalNamePattern } from '../../../kernel/addresses.js';
import { limits } from '../../../kernel/limits.js';
import type { Referrer } from '../../../domain/fleet/referrers.js';
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
  oneOf,
  port,
  shortId,
  text,
  uuid,
} from '../schemas/fields.js';
import { instant, sorting } from '../schemas/query.js';
import { documented, sample } from '../schemas/documented.js';
import { idOf, managedBy, referrer, timeOf, timestamps } from '../schemas/shared-schemas.js';
import { expected } from '../schemas/validation.js';
import type { RestApp, RestDeps } from '../deps.js';
import { listRanked } from './ranked-list.js';
import { resourceRoutes } from './resource-routes.js';

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
const about = {
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
const fileBody = z
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

/** The fields of a credential in a document of the fleet, without secrets; a self-signed certificate is its parameters. */
function credentialInFile(state: object): JsonObject {
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

const credentialBodies = { create: createBody, update: updateBody };

const filters = {
  key_type: oneOf(keyTypes).optional().meta({ description: 'Only credentials of this type' }),
  expires_before: instant
    .optional()
    .meta({ description: 'Only certificates that expire before this time', examples: [sample.time] }),
  sort: sorting('not_after', '-not_after').optional().meta({
    description: 'Order of the items, then by id; `-` reverses it. Credentials without a certificate always come last',
    default: 'name',
  }),
};
type Filters = z.output<z.ZodObject<typeof filters>>;

const certificateSchema = z
  .object({
    subject: documented(z.string(), 'Distinguished name', 'CN=app.example'),
    issuer: documented(z.string(), 'Distinguished name', 'CN=app.example'),
    subject_alt_names: documented(z.array(z.string()), 'Names that it is valid for', ['app.example']),
    not_before: timeOf('Valid from'),
    not_after: timeOf('Valid until', '2030-05-01T12:00:00.000Z'),
    serial_number: documented(z.string(), 'Hexadecimal', '1f0c3f5e6d0c4f0b'),
    fingerprint_sha256: documented(z.string(), 'SHA-256 of the certificate in lower-case hex', sample.fingerprint),
    spki_sha256: documented(z.string(), 'Base64 of the SHA-256 of its public key, as in pins', sample.pin),
    self_signed: documented(z.boolean(), 'Whether its own key signed it', true),
  })
  .meta({ id: 'Certificate', description: 'The content of a certificate' });

const credentialSchema = z
  .object({
    id: idOf('Id, a UUID', sample.reality),
    name: documented(z.string(), 'Name, unique among credentials', 'app'),
    key_type: documented(z.enum(keyTypes), 'Type of the credential', 'reality'),
    public_key: documented(
      z.string().nullable(),
      'Public key in base64url of an `x25519` credential; of a `reality` credential, the key of its key pair, which clients need',
      sample.publicKey,
    ),
    x25519_credential_id: documented(idOf('', sample.keyPair).nullable(), about.x25519_credential_id, sample.keyPair),
    server_names: documented(z.array(z.string()), about.server_names, ['app.example']),
    short_ids: documented(z.array(z.string()), about.short_ids, ['0a1b2c3d']),
    target_host: documented(z.string().nullable(), about.target_host, 'www.example'),
    target_port: documented(z.int().nullable(), about.target_port, 443),
    certificate: documented(certificateSchema.nullable(), 'The certificate of a `tls_cert` credential', null),
    in_use_by: documented(z.array(referrer), 'Resources that use it; they keep it from being deleted'),
    managed_by: managedBy,
    ...timestamps,
  })
  .meta({
    id: 'Credential',
    description: 'A credential without its private key; fields that its type does not have are null or empty',
  });

/** A credential in answers. The schema drops other fields, such as the sealed key. */
export interface CredentialView extends Omit<CredentialState, 'private_key' | 'certificate_pem' | 'overlap'> {
  readonly in_use_by: readonly Referrer[];
}

function credentialView(credential: CredentialState, in_use_by: readonly Referrer[]): CredentialView {
  const { private_key: _key, certificate_pem: _pem, overlap: _overlap, ...shown } = credential;
  return { ...shown, in_use_by };
}

const endsBefore = ({ not_after }: NonNullable<CredentialState['certificate']>, time: string): boolean =>
  Date.parse(not_after) < Date.parse(time);

/** The same fields, all optional. */
function partial<S extends { readonly [field: string]: z.ZodType }>(
  fields: S,
): { readonly [F in keyof S]: z.ZodOptional<S[F]> } {
  return Object.fromEntries(Object.entries(fields).map(([field, schema]) => [field, schema.optional()])) as {
    readonly [F in keyof S]: z.ZodOptional<S[F]>;
  };
}

export function credentialRoutes(app: RestApp, deps: RestDeps): void {
  const queries = deps.fleet.resources.credential;
  const commands = deps.commands.credentials;
  const view = (credential: CredentialState): CredentialView => {
    const { id, x25519_credential_id: keys } = credential;
    const public_key = keys === null ? credential.public_key : (queries.get(keys)?.public_key ?? null);
    return credentialView({ ...credential, public_key }, deps.fleet.referrers(credentialKey.type, id));
  };

  resourceRoutes(app, {
    path: '/api/credentials',
    what: 'credential',
    tag: 'credentials',
    rollsOut: true,
    names: { one: 'Credential', many: 'Credentials' },
    summaries: {
      list: 'List credentials of all types',
      create: 'Create a credential; only the nodes that use it get its private key',
      get: 'Get a credential',
      update: 'Change a credential, or replace its key or certificate on every node that uses it',
      remove: 'Delete a credential that nothing uses',
    },
    details: {
      create: 'The fields of the body depend on its `key_type`. An omitted key is generated.',
      update:
        "All fields must be of the credential's type. A new key or certificate reaches every node that uses it; a change that would break a user is a 409.",
    },
    shape: {},
    bodies: credentialBodies,
    inFile: { body: fileBody, fieldsOf: credentialInFile },
    schema: credentialSchema,
    filters,
    list(paged, checked) {
      const { key_type, expires_before, sort } = checked as Filters;
      const matches = ({ key_type: type, certificate }: CredentialState): boolean =>
        (key_type === undefined || type === key_type) &&
        (expires_before === undefined || (certificate !== null && endsBefore(certificate, expires_before)));
      const query = { ...paged, matches };
      const { items, ...rest } =
        sort === 'not_after' || sort === '-not_after'
          ? listRanked(queries, query, sort, ({ certificate }) => certificate?.not_after)
          : queries.list(query);
      return { items: items.map(view), ...rest };
    },
    get(id) {
      const credential = queries.get(id);
      return credential === undefined ? undefined : view(credential);
    },
    create: (context, _definition, checked) => commands.create(context, checked as unknown as NewCredential),
    update: (context, id, ifMatch, changes: CredentialChanges) => commands.update(context, id, ifMatch, changes),
    remove: commands.remove,
    view,
    createdView: view,
  });
}
