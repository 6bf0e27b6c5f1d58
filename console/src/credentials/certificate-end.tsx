/** When a certificate ends, by colour and sign when that is soon. */
import type { ReactNode } from 'react';
import { none } from '../shared/ui/format.js';
import { useNow } from '../shared/ui/now.js';
import { State } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import type { Certificate } from './credentials.js';

const soonMs = 30 * 86_400_000;

export function CertificateEnd({ certificate }: { readonly certificate: Certificate | null }): ReactNode {
  const now = useNow();
  if (certificate === null) return none;
  const left = Date.parse(certificate.not_after) - now;
  return (
    <State mood={left <= 0 ? 'bad' : left < soonMs ? 'warning' : 'good'}>
      <When at={certificate.not_after} />
    </State>
  );
}
