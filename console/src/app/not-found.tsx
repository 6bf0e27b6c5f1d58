/** Shown for an address without a page. */
import type { ReactNode } from 'react';
import { Empty } from '../shared/ui/empty.js';
import { Page } from '../shared/ui/page.js';
import { text } from './shell.text.js';
import { TextLink } from '../shared/ui/links.js';

export function NotFound(): ReactNode {
  return (
    <Page title={text.notFound}>
      <Empty title={text.noSuchPage}>
        <TextLink to="/">{text.toOverview}</TextLink>
      </Empty>
    </Page>
  );
}
