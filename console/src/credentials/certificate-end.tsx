/** When a certificate ends: days left, by colour and sign when they are few, and the day. */
import type { ReactNode } from 'react';
import { formatDuration, formatTime, none } from '../shared/ui/format.js';
import { useNow } from '../shared/ui/now.js';
import { State } from '../shared/ui/state.js';
import { states } from '../shared/ui/states.js';
import type { Certificate } from './credentials.js';
import { text } from './credentials.text.js';

const soonMs = 30 * 86_400_000;

export function CertificateEnd({ certificate }: { readonly certificate: Certificate | null }): ReactNode {
  const now = useNow();
  if (certificate === null) return none;
  const { not_after: at } = certificate;
  const left = Date.parse(at) - now;
  const [mood] = states.certificate[left <= 0 ? 'ended' : left < soonMs ? 'ending' : 'valid'];
  return (
    <State mood={mood} why={formatTime(at)}>
      <time dateTime={at}>{left <= 0 ? text.endedAt(formatTime(at, 'shortDate')) : text.left(formatDays(left))}</time>
    </State>
  );
}

/** In days while more than one is left. */
function formatDays(left: number): string {
  const days = Math.floor(left / 86_400_000);
  return days > 1 ? `${days} days` : formatDuration(left / 1_000);
}
