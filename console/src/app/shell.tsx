/**
 * The frame around every page: who is signed in, the navigation, and whether the page is live. While the service is out
 * of reach, the page stays, greyed, and recovers by itself. Nothing here moves when that changes.
 */
import { AppShell, Burger, Container, Group, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Outlet, useLocation } from '@tanstack/react-router';
import { useEffect, type ReactNode } from 'react';
import { LeaveGuard } from '../shared/forms/leave-guard.js';
import { startLive, useLive } from '../shared/live/live.js';
import { meQuery } from '../shared/session.js';
import { PageSkeleton } from '../shared/ui/page-skeleton.js';
import { Problem } from '../shared/ui/problem.js';
import { LiveState } from './live-state.js';
import mark from './mark.svg';
import { Menu } from './menu.js';
import { PaletteButton } from './palette-button.js';
import classes from './shell.module.css';
import { text } from './shell.text.js';
import { SignInAgain, SignInPage } from './sign-in.js';
import { UserMenu } from './user-menu.js';

export function Shell(): ReactNode {
  const { data: me, error, refetch } = useQuery(meQuery);
  const signedIn = me !== undefined;
  useEffect(() => {
    if (signedIn) startLive();
  }, [signedIn]);
  if (me === undefined) {
    if (error === null) return <Coming />;
    return error.status === 401 ? <SignInPage /> : <Problem error={error} retry={() => void refetch()} />;
  }
  return <SignedIn />;
}

function SignedIn(): ReactNode {
  const [opened, menu] = useDisclosure();
  const live = useLive();
  const { pathname } = useLocation();
  // The menu covers a narrow window.
  useEffect(() => menu.close(), [pathname, menu]);
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 208, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
    >
      <a href="#page" className={classes.skip}>
        {text.skip}
      </a>
      <AppShell.Header className={classes.header} data-away={live.kind === 'unreachable' || undefined}>
        <Group h="100%" px="md" gap="sm" wrap="nowrap">
          <Burger opened={opened} onClick={menu.toggle} hiddenFrom="sm" size="sm" aria-label={text.menu} />
          <img src={mark} width={24} height={24} alt="" className={classes.mark} />
          <Text fw={650} visibleFrom="sm" className={classes.product}>
            {text.product}
          </Text>
          <div className={classes.state}>
            <LiveState live={live} />
          </div>
          <PaletteButton />
          <UserMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" component="nav" className={classes.menu} aria-label={text.menu}>
        <Menu />
      </AppShell.Navbar>
      <AppShell.Main
        id="page"
        tabIndex={-1}
        className={classes.main}
        data-away={live.kind === 'unreachable' || undefined}
      >
        <Outlet />
      </AppShell.Main>
      <LeaveGuard />
      <SignInAgain opened={live.kind === 'signed_out'} />
    </AppShell>
  );
}

/** Shown until it is known who is signed in. */
function Coming(): ReactNode {
  return (
    <Container size="md" pt={72}>
      <PageSkeleton />
    </Container>
  );
}
