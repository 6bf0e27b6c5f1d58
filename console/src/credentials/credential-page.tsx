/** One credential: what it is, when it ends, and what uses it. */
import type { ReactNode } from 'react';
import { Facts } from '../shared/ui/facts.js';
import { LinkButton } from '../shared/ui/links.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { ListOfUsers } from '../shared/ui/used-by.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { CertificateEnd } from './certificate-end.js';
import { credentials, type Certificate, type Credential } from './credentials.js';
import { text } from './credentials.text.js';

export const CredentialPage = resourcePage(credentials, ({ resource: credential }) => {
  const { id, key_type: keyType, certificate, in_use_by: usedBy } = credential;
  return (
    <ResourcePage
      of={credentials}
      resource={credential}
      aside={certificate !== null && <CertificateEnd certificate={certificate} />}
      actions={
        keyType !== 'reality' && (
          <LinkButton variant="default" to="/credentials/$id/rotate" params={{ id }}>
            {text.rotate}
          </LinkButton>
        )
      }
      removeMeaning={text.removeMeaning}
      usedBy={usedBy}
      facts={{ [text.type]: text.types[keyType], ...keyFacts(credential) }}
    >
      {certificate !== null && <CertificateFacts certificate={certificate} />}
      <Section title={text.usedBy}>{usedBy.length === 0 ? text.unused : <ListOfUsers users={usedBy} />}</Section>
    </ResourcePage>
  );
});

/** The facts about a credential of one type. */
function keyFacts(credential: Credential): Readonly<Record<string, ReactNode>> {
  const { key_type: keyType, public_key: publicKey, x25519_credential_id: pairId } = credential;
  switch (keyType) {
    case 'x25519':
      return { [text.publicKey]: publicKey };
    case 'reality':
      return {
        [text.publicKey]: publicKey,
        [text.keyPair]: pairId && <NamedLink type="credential" id={pairId} />,
        [text.serverNames]: credential.server_names.join(', '),
        [text.shortIds]: credential.short_ids.map((id) => id || '""').join(', '),
        [text.target]: `${credential.target_host}:${credential.target_port}`,
      };
    case 'tls_cert':
      return {};
    default:
      return keyType satisfies never;
  }
}

function CertificateFacts({ certificate }: { readonly certificate: Certificate }): ReactNode {
  return (
    <Section title={text.certificate}>
      <Facts
        facts={{
          [text.subject]: certificate.subject,
          [text.issuer]: certificate.self_signed ? text.selfSigned : certificate.issuer,
          [text.altNames]: certificate.subject_alt_names.join(', ') || null,
          [text.begins]: <When at={certificate.not_before} />,
          [text.ends]: <CertificateEnd certificate={certificate} />,
          [text.serial]: certificate.serial_number,
          [text.fingerprint]: certificate.fingerprint_sha256,
          [text.pin]: certificate.spki_sha256,
        }}
      />
    </Section>
  );
}
