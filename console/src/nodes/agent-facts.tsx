/** The description of a node, and what its agent last reported about itself. */
import { Code } from '@mantine/core';
import type { ReactNode } from 'react';
import { Facts } from '../shared/ui/facts.js';
import { formatDuration, formatShare } from '../shared/ui/format.js';
import { text as shared } from '../shared/ui/ui.text.js';
import { TextLink } from '../shared/ui/links.js';
import { When } from '../shared/ui/when.js';
import type { Node } from './nodes.js';
import { text } from './nodes.text.js';

export function AgentFacts({ node }: { readonly node: Node }): ReactNode {
  const share = (value: number | null): string | null => (value === null ? null : formatShare(value));
  const publicAddresses = [node.public_ipv4, node.public_ipv6].filter((one) => one !== null);
  return (
    <Facts
      facts={{
        [text.lastSeen]: <When at={node.last_seen_at} />,
        [text.agentVersion]: node.agent_version,
        [text.uptime]: node.uptime_seconds === null ? null : formatDuration(node.uptime_seconds),
        [text.cpu]: share(node.cpu_usage),
        [text.memory]: share(node.memory_usage),
        [text.dialled]: node.address ?? text.byReport,
        [text.publicAddresses]: publicAddresses.join(', ') || null,
        [text.addresses]: node.detected_addresses.join(', ') || null,
        [text.multiplex]: <Multiplex node={node} />,
        [text.psk]:
          node.psk_fingerprint === null ? (
            text.noPsk
          ) : (
            <>
              <Code>{node.psk_fingerprint}</Code> {text.issued} <When at={node.psk_issued_at} />{' '}
              <TextLink to="/nodes/$id/psk" params={{ id: node.id }}>
                {text.rotation}
              </TextLink>
            </>
          ),
        ...(node.psk_candidate !== null && {
          [text.candidate]: (
            <>
              {text.candidateUntil} <When at={node.psk_candidate.expires_at} />
            </>
          ),
        }),
        ...(node.managed_by === null ? {} : { [shared.managedBy]: node.managed_by }),
        [shared.updated]: <When at={node.updated_at} />,
      }}
    />
  );
}

function Multiplex({ node }: { readonly node: Node }): ReactNode {
  const { multiplex, multiplex_port: port, reported_multiplex: reported, reported_multiplex_port: on } = node;
  const words = (yes: boolean, at: number | null): string => (yes ? text.yesOn(String(at)) : text.no);
  const wanted = words(multiplex, port);
  if (reported === null || words(reported, on) === wanted) return wanted;
  return `${wanted} (${text.reportedOtherwise(words(reported, on))})`;
}
