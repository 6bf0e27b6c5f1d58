/** One credential: what it is, when it ends, and what uses it. */
import { List } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Facts } from '../shared/ui/facts.js';
import { LinkButton } from '../shared/ui/links.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceActions } from '../shared/ui/resource-actions.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { CertificateEnd } from './certificate-end.js';
import { credentialQuery, deleteCredential } from './credentials.js';
import type { Certificate, Credential } from './credentials.js';
import { text } from './credentials.text.js';

export function CredentialPage(): ReactNode {
  const { id } = useParams({ from: '/credentials/$id' });
  const { data: credential, error, refetch } = useQuery(credentialQuery(id));
  if (credential === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  const { name, key_type: keyType, certificate, in_use_by: usedBy } = credential;
  return (
    <Page
      title={name}
      aside={certificate !== null && <CertificateEnd certificate={certificate} />}
      actions={
        <ResourceActions
          type="credential"
          id={id}
          name={name}
          edit={{ to: '/credentials/$id/edit', params: { id } }}
          remove={{
            run: () => deleteCredential(id),
            meaning: text.removeMeaning,
            list: { to: '/credentials' },
            usedBy,
          }}
        >
          {keyType !== 'reality' && (
            <LinkButton variant="default" to="/credentials/$id/rotate" params={{ id }}>
              {text.rotate}
            </LinkButton>
          )}
        </ResourceActions>
      }
    >
      <Section title={text.details}>
        <Facts
          facts={{
            [text.type]: text.types[keyType],
            ...keyFacts(credential),
            [text.managedBy]: credential.managed_by,
            [text.created]: <When at={credential.created_at} />,
            [text.updated]: <When at={credential.updated_at} />,
          }}
        />
      </Section>
      {certificate !== null && <CertificateFacts certificate={certificate} />}
      <Section title={text.usedBy}>
        {usedBy.length === 0 ? (
          text.unused
        ) : (
          <List size="sm">
            {usedBy.map((user) => (
              <List.Item key={`${user.type} ${user.id}`}>
                <ResourceLink {...user} />
              </List.Item>
            ))}
          </List>
        )}
      </Section>
    </Page>
  );
}

/** What a credential of its type has. */
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
