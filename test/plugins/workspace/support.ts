import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { daemonWith, type Support, type SupportOptions } from '../../support/daemon.js'
import { clientOf, People } from '../../support/people.js'

/** A daemon with the workspace and people on its roster: `mai` a maintainer, `ann` limited to `docs`. */
export interface WorkspaceWorld {
  readonly daemon: Support
  readonly as: (name: string) => ReturnType<typeof clientOf>
  /** The status of a request of somebody; without a body it is a GET. */
  readonly ask: (name: string, path: string, method?: string, body?: object) => Promise<Response>
}

/** A daemon that serves the workspace, and areas where people are limited to them. */
export const workspaceWorld = async (
  t: Test,
  { groups = [], ...options }: SupportOptions & { readonly groups?: readonly string[] } = {},
): Promise<WorkspaceWorld> => {
  const people = new People()
  people.add('owner@sandbox.local', 'owner')
  people.add('mai@example.org', 'maintainer')
  people.add('col@example.org', 'collaborator')
  people.add('vic@example.org', 'viewer')
  people.add('ann@example.org', 'collaborator', ['docs'])
  const daemon = await daemonWith(t, ['workspace', 'areas', ...groups], {
    ...options,
    fakes: { ...(!groups.includes('system') && people.fakes), ...options.fakes },
  })
  people.admit(daemon)
  return {
    daemon,
    as: name => clientOf(daemon, `${name}@example.org`),
    ask: (name, path, method = 'GET', body) =>
      fetch(daemon.url + path, {
        method,
        headers: {
          authorization: `Bearer ${name}@example.org`,
          ...(body && { 'content-type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
      }),
  }
}

/** Names and links that are to trap whoever reads a tree; answers what lies outside. */
export const layTraps = (workspace: string, outside: string): void => {
  mkdirSync(outside, { recursive: true })
  writeFileSync(join(outside, 'secret'), 'zirkonia')
  mkdirSync(join(workspace, 'docs/deep'), { recursive: true })
  writeFileSync(join(workspace, 'docs/a.md'), 'one\n')
  symlinkSync(outside, join(workspace, 'out'))
  symlinkSync(join(outside, 'secret'), join(workspace, 'docs/out'))
  symlinkSync('nowhere', join(workspace, 'broken'))
  symlinkSync('..', join(workspace, 'docs/up'))
  symlinkSync('circle', join(workspace, 'circle'))
  symlinkSync('.git', join(workspace, 'way'))
  symlinkSync('docs', join(workspace, 'same'))
  execFileSync('mkfifo', [join(workspace, 'pipe')])
  const lossy = Buffer.concat([Buffer.from(`${workspace}/bad-`), Buffer.from([0xff, 0xfe])])
  writeFileSync(lossy, 'x')
}
