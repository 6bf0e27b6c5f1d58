/**
 * The verdict, and what needs attention, worst first: the API's matters, and nothing else. All is well when none of
 * them is a fault, agents' reports are current, and something is deployed.
 */
import type { ReactNode } from 'react';
import type { Matter, Stats } from '../shared/dashboard.js';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Sign, type Mood } from '../shared/ui/state.js';
import { known } from '../shared/ui/states.js';
import { pageOfList } from './matter-page.js';
import classes from './overview.module.css';
import { text } from './overview.text.js';
import { verdictOf } from './verdict.js';

/** How many resources of a matter are named. */
const named = 5;

export function Matters({ stats, stale }: { readonly stats: Stats; readonly stale: boolean }): ReactNode {
  const { mood, words } = verdictOf(stats, stale);
  return (
    <section className={classes.verdict} data-mood={mood} aria-label={text.state} aria-live="polite">
      <div className={classes.words}>
        <Sign mood={mood} size={26} />
        <strong>{words}</strong>
      </div>
      {stats.matters.length > 0 && (
        <ul className={classes.matters}>
          {stats.matters.map((matter) => (
            <One key={`${matter.kind} ${matter.sentence}`} matter={matter} mood={known('matter', matter.severity)[0]} />
          ))}
        </ul>
      )}
    </section>
  );
}

function One({ matter, mood }: { readonly matter: Matter; readonly mood: Mood }): ReactNode {
  const { sentence, count, resources, filter } = matter;
  const page = filter === null ? undefined : pageOfList(filter);
  const shown = resources.slice(0, named);
  const more = count - shown.length;
  return (
    <li className={classes.matter}>
      <Sign mood={mood} />
      <div>
        <div className={classes.sentence}>{sentence}</div>
        <div className={classes.names}>
          {shown.map(({ type, id, name, reason }) => (
            <span key={id}>
              <ResourceLink type={type} id={id} name={name} />
              {/* Left out if the sentence says it already. */}
              {!sentence.includes(reason) && `: ${reason}`}
            </span>
          ))}
          {more > 0 && page === undefined && <span>{text.more(formatCount(more))}</span>}
        </div>
      </div>
      {page !== undefined && count > 1 && (
        <TextLink {...page} className={classes.mend}>
          {more > 0 ? text.more(formatCount(more)) : text.showAll}
        </TextLink>
      )}
    </li>
  );
}
