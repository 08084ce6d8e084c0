import type { FunctionComponent } from 'preact'
import type { Role } from '../../../../sdk/types.js'
import type { IconName } from '../ui/icons.js'

/** The input of a page: the parts of its address after its own name. */
export interface PageProps {
  readonly rest: readonly string[]
}

/** A page of the console: a separate chunk, loaded when it is first shown. */
export interface ConsolePageEntry {
  /** The first part of its address. */
  readonly name: string
  readonly label: string
  readonly icon: IconName
  /** The least role that sees it. */
  readonly role: Role
  /** The call without which the page has nothing to show. */
  readonly needs: string
  /** Whether the navigation names it. */
  readonly listed: boolean
  /** The bar of a phone leaves it to the page "More". */
  readonly wide?: true
  /** Only the bar of a phone names it. */
  readonly narrow?: true
  /** The key that leads to it, after `g`. */
  readonly key?: string
  readonly load: () => Promise<FunctionComponent<PageProps>>
}

const RANK: readonly Role[] = ['viewer', 'collaborator', 'maintainer', 'owner']

/** Whether a role includes another one. */
export const reaches = (role: Role | undefined, least: Role): boolean =>
  role !== undefined && RANK.indexOf(role) >= RANK.indexOf(least)

/** Every page; the first one is shown if the address names none. */
export const PAGES: readonly ConsolePageEntry[] = [
  {
    name: 'fleet',
    label: 'Fleet',
    icon: 'fleet',
    role: 'viewer',
    needs: 'agents.list',
    listed: true,
    key: 'f',
    load: async () => (await import('./fleet/fleet-page.js')).FleetPage,
  },
  {
    name: 'inbox',
    label: 'Inbox',
    icon: 'inbox',
    role: 'viewer',
    needs: 'agent.cards',
    listed: true,
    key: 'i',
    load: async () => (await import('./inbox/inbox-page.js')).InboxPage,
  },
  {
    name: 'needs',
    label: 'Needs',
    icon: 'people',
    role: 'viewer',
    needs: 'needs.list',
    listed: true,
    wide: true,
    load: async () => (await import('./needs/needs-page.js')).NeedsPage,
  },
  {
    name: 'c',
    label: 'Conversation',
    icon: 'fleet',
    role: 'viewer',
    needs: 'agents.transcript',
    listed: false,
    load: async () => (await import('./conversation/conversation-page.js')).ConversationPage,
  },
  {
    name: 'new',
    label: 'New conversation',
    icon: 'fleet',
    role: 'collaborator',
    needs: 'agent.run',
    listed: false,
    load: async () => (await import('./new/new-page.js')).NewPage,
  },
  {
    name: 'files',
    label: 'Files',
    icon: 'file',
    role: 'viewer',
    needs: 'workspace.tree',
    listed: true,
    wide: true,
    key: 'e',
    load: async () => (await import('./files/files-page.js')).FilesPage,
  },
  {
    name: 'git',
    label: 'Git',
    icon: 'git',
    role: 'viewer',
    needs: 'git.changes',
    listed: true,
    wide: true,
    key: 'v',
    load: async () => (await import('./git/git-page.js')).GitPage,
  },
  {
    name: 'history',
    label: 'History',
    icon: 'history',
    role: 'viewer',
    needs: 'history.list',
    listed: true,
    wide: true,
    key: 'h',
    load: async () => (await import('./history/history-page.js')).HistoryPage,
  },
  {
    name: 'projects',
    label: 'Projects',
    icon: 'skill',
    role: 'viewer',
    needs: 'workspace.setup',
    listed: true,
    wide: true,
    key: 'j',
    load: async () => (await import('./projects/projects-page.js')).ProjectsPage,
  },
  {
    name: 'terminals',
    label: 'Terminals',
    icon: 'terminal',
    role: 'collaborator',
    needs: 'system.terminals',
    listed: true,
    wide: true,
    key: 't',
    load: async () => (await import('./terminals/terminals-page.js')).TerminalsPage,
  },
  {
    name: 'browsers',
    label: 'Browsers',
    icon: 'browser',
    role: 'viewer',
    needs: 'system.browsers',
    listed: true,
    wide: true,
    key: 'b',
    load: async () => (await import('./browsers/browsers-page.js')).BrowsersPage,
  },
  {
    name: 'ports',
    label: 'Ports',
    icon: 'port',
    role: 'viewer',
    needs: 'ports.list',
    listed: true,
    wide: true,
    key: 'o',
    load: async () => (await import('./ports/ports-page.js')).PortsPage,
  },
  {
    name: 'activity',
    label: 'Activity',
    icon: 'activity',
    role: 'viewer',
    needs: 'activity.list',
    listed: true,
    wide: true,
    key: 'a',
    load: async () => (await import('./activity/activity-page.js')).ActivityPage,
  },
  {
    name: 'sessions',
    label: 'Past sessions',
    icon: 'record',
    role: 'viewer',
    needs: 'sessions.list',
    listed: true,
    wide: true,
    load: async () => (await import('./sessions/sessions-page.js')).SessionsPage,
  },
  {
    name: 'logs',
    label: 'Logs',
    icon: 'logs',
    role: 'maintainer',
    needs: 'logs.list',
    listed: true,
    wide: true,
    key: 'l',
    load: async () => (await import('./logs/logs-page.js')).LogsPage,
  },
  {
    name: 'access',
    label: 'Access',
    icon: 'key',
    role: 'maintainer',
    needs: 'system.members',
    listed: true,
    wide: true,
    key: 'p',
    load: async () => (await import('./access/access-page.js')).AccessPage,
  },
  {
    name: 'machine',
    label: 'Machine',
    icon: 'machine',
    role: 'viewer',
    needs: 'system.usage',
    listed: true,
    wide: true,
    key: 'm',
    load: async () => (await import('./machine/machine-page.js')).MachinePage,
  },
  {
    name: 'models',
    label: 'Models',
    icon: 'models',
    role: 'viewer',
    needs: 'providers.list',
    listed: true,
    wide: true,
    load: async () => (await import('./models/models-page.js')).ModelsPage,
  },
  {
    name: 'connections',
    label: 'Connections',
    icon: 'port',
    role: 'maintainer',
    needs: 'capabilities.list',
    listed: true,
    wide: true,
    load: async () => (await import('./connections/connections-page.js')).ConnectionsPage,
  },
  {
    name: 'secrets',
    label: 'Secrets',
    icon: 'secret',
    role: 'maintainer',
    needs: 'secrets.inventory',
    listed: true,
    wide: true,
    load: async () => (await import('./secrets/secrets-page.js')).SecretsPage,
  },
  {
    name: 'usage',
    label: 'Usage',
    icon: 'usage',
    role: 'maintainer',
    needs: 'usage.rollup',
    listed: true,
    wide: true,
    key: 'u',
    load: async () => (await import('./usage/usage-page.js')).UsagePage,
  },
  {
    name: 'extensions',
    label: 'Extensions',
    icon: 'extension',
    role: 'viewer',
    needs: 'extensions.list',
    listed: true,
    wide: true,
    key: 'x',
    load: async () => (await import('./extensions/extensions-page.js')).ExtensionsPage,
  },
  {
    name: 'x',
    label: 'Extension',
    icon: 'extension',
    role: 'viewer',
    needs: 'extensions.bundle',
    listed: false,
    load: async () => (await import('./extension-view/extension-view-page.js')).ExtensionViewPage,
  },
  {
    name: 'personas',
    label: 'Personas',
    icon: 'people',
    role: 'viewer',
    needs: 'personas.list',
    listed: true,
    wide: true,
    load: async () => (await import('./personas/personas-page.js')).PersonasPage,
  },
  {
    name: 'automations',
    label: 'Automations',
    icon: 'clock',
    role: 'viewer',
    needs: 'automations.list',
    listed: true,
    wide: true,
    load: async () => (await import('./automations/automations-page.js')).AutomationsPage,
  },
  {
    name: 'skills',
    label: 'Skills',
    icon: 'skill',
    role: 'viewer',
    needs: 'skills.list',
    listed: true,
    wide: true,
    load: async () => (await import('./skills/skills-page.js')).SkillsPage,
  },
  {
    name: 'settings',
    label: 'Settings',
    icon: 'settings',
    role: 'viewer',
    needs: 'settings.get',
    listed: true,
    wide: true,
    key: 's',
    load: async () => (await import('./settings/settings-page.js')).SettingsPage,
  },
  {
    name: 'more',
    label: 'More',
    icon: 'more',
    role: 'viewer',
    needs: 'system.info',
    listed: true,
    narrow: true,
    load: async () => (await import('./more/more-page.js')).MorePage,
  },
  {
    name: 'me',
    label: 'You',
    icon: 'people',
    role: 'viewer',
    needs: 'system.sessions',
    listed: true,
    load: async () => (await import('./me/me-page.js')).MePage,
  },
]
