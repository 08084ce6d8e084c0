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

/** Everybody sees it, the navigation names it; the bar of a phone leaves it to the page "More". */
const IN_LIST = { role: 'viewer', listed: true, wide: true } as const

/** Every page; where nothing else is said, its label is its name. */
const ENTRIES: readonly (Omit<ConsolePageEntry, 'label'> & { readonly label?: string })[] = [
  {
    name: 'fleet',
    icon: 'fleet',
    role: 'viewer',
    needs: 'agents.list',
    listed: true,
    key: 'f',
    load: async () => (await import('./fleet/fleet-page.js')).FleetPage,
  },
  {
    name: 'inbox',
    icon: 'inbox',
    role: 'viewer',
    needs: 'agent.cards',
    listed: true,
    key: 'i',
    load: async () => (await import('./inbox/inbox-page.js')).InboxPage,
  },
  {
    name: 'needs',
    icon: 'people',
    needs: 'needs.list',
    ...IN_LIST,
    load: async () => (await import('./needs/needs-page.js')).NeedsPage,
  },
  {
    name: 'approvals',
    icon: 'inbox',
    needs: 'approvals.list',
    ...IN_LIST,
    load: async () => (await import('./approvals/approvals-page.js')).ApprovalsPage,
  },
  {
    name: 'issues',
    icon: 'logs',
    needs: 'issues.list',
    ...IN_LIST,
    load: async () => (await import('./issues/issues-page.js')).IssuesPage,
  },
  {
    name: 'pipelines',
    icon: 'git',
    needs: 'ci.runs',
    ...IN_LIST,
    load: async () => (await import('./pipelines/pipelines-page.js')).PipelinesPage,
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
    icon: 'file',
    needs: 'workspace.tree',
    ...IN_LIST,
    key: 'e',
    load: async () => (await import('./files/files-page.js')).FilesPage,
  },
  {
    name: 'git',
    icon: 'git',
    needs: 'git.changes',
    ...IN_LIST,
    key: 'v',
    load: async () => (await import('./git/git-page.js')).GitPage,
  },
  {
    name: 'history',
    icon: 'history',
    needs: 'history.list',
    ...IN_LIST,
    key: 'h',
    load: async () => (await import('./history/history-page.js')).HistoryPage,
  },
  {
    name: 'projects',
    icon: 'skill',
    needs: 'workspace.setup',
    ...IN_LIST,
    key: 'j',
    load: async () => (await import('./projects/projects-page.js')).ProjectsPage,
  },
  {
    name: 'chores',
    icon: 'clock',
    needs: 'chores.list',
    ...IN_LIST,
    load: async () => (await import('./chores/chores-page.js')).ChoresPage,
  },
  {
    name: 'terminals',
    icon: 'terminal',
    needs: 'system.terminals',
    ...IN_LIST,
    role: 'collaborator',
    key: 't',
    load: async () => (await import('./terminals/terminals-page.js')).TerminalsPage,
  },
  {
    name: 'browsers',
    icon: 'browser',
    needs: 'system.browsers',
    ...IN_LIST,
    key: 'b',
    load: async () => (await import('./browsers/browsers-page.js')).BrowsersPage,
  },
  {
    name: 'ports',
    icon: 'port',
    needs: 'ports.list',
    ...IN_LIST,
    key: 'o',
    load: async () => (await import('./ports/ports-page.js')).PortsPage,
  },
  {
    name: 'vpn',
    label: 'VPN',
    icon: 'key',
    needs: 'vpn.list',
    ...IN_LIST,
    load: async () => (await import('./vpn/vpn-page.js')).VpnPage,
  },
  {
    name: 'exits',
    icon: 'key',
    needs: 'exit.list',
    ...IN_LIST,
    load: async () => (await import('./exits/exits-page.js')).ExitsPage,
  },
  {
    name: 'disks',
    icon: 'machine',
    needs: 'disks.list',
    ...IN_LIST,
    load: async () => (await import('./disks/disks-page.js')).DisksPage,
  },
  {
    name: 'inventory',
    icon: 'machine',
    needs: 'inventory.list',
    ...IN_LIST,
    load: async () => (await import('./inventory/inventory-page.js')).InventoryPage,
  },
  {
    name: 'deployment',
    icon: 'machine',
    needs: 'cli.describe',
    ...IN_LIST,
    load: async () => (await import('./deployment/deployment-page.js')).DeploymentPage,
  },
  {
    name: 'outbox',
    icon: 'file',
    needs: 'public.list',
    ...IN_LIST,
    load: async () => (await import('./outbox/outbox-page.js')).OutboxPage,
  },
  {
    name: 'share',
    label: 'Shared pages',
    icon: 'record',
    needs: 'share.list',
    ...IN_LIST,
    load: async () => (await import('./share/share-page.js')).SharePage,
  },
  {
    name: 'webchat',
    label: 'Web chat',
    icon: 'record',
    needs: 'automations.list',
    ...IN_LIST,
    load: async () => (await import('./webchat/webchat-page.js')).WebchatPage,
  },
  {
    name: 'activity',
    icon: 'activity',
    needs: 'activity.list',
    ...IN_LIST,
    key: 'a',
    load: async () => (await import('./activity/activity-page.js')).ActivityPage,
  },
  {
    name: 'sessions',
    label: 'Past sessions',
    icon: 'record',
    needs: 'sessions.list',
    ...IN_LIST,
    load: async () => (await import('./sessions/sessions-page.js')).SessionsPage,
  },
  {
    name: 'logs',
    icon: 'logs',
    needs: 'logs.list',
    ...IN_LIST,
    role: 'maintainer',
    key: 'l',
    load: async () => (await import('./logs/logs-page.js')).LogsPage,
  },
  {
    name: 'access',
    icon: 'key',
    needs: 'system.members',
    ...IN_LIST,
    role: 'maintainer',
    key: 'p',
    load: async () => (await import('./access/access-page.js')).AccessPage,
  },
  {
    name: 'machine',
    icon: 'machine',
    needs: 'system.usage',
    ...IN_LIST,
    key: 'm',
    load: async () => (await import('./machine/machine-page.js')).MachinePage,
  },
  {
    name: 'models',
    icon: 'models',
    needs: 'providers.list',
    ...IN_LIST,
    load: async () => (await import('./models/models-page.js')).ModelsPage,
  },
  {
    name: 'accounts',
    icon: 'people',
    needs: 'accounts.list',
    ...IN_LIST,
    role: 'collaborator',
    load: async () => (await import('./accounts/accounts-page.js')).AccountsPage,
  },
  {
    name: 'connections',
    icon: 'port',
    needs: 'capabilities.list',
    ...IN_LIST,
    role: 'maintainer',
    load: async () => (await import('./connections/connections-page.js')).ConnectionsPage,
  },
  {
    name: 'secrets',
    icon: 'secret',
    needs: 'secrets.inventory',
    ...IN_LIST,
    role: 'maintainer',
    load: async () => (await import('./secrets/secrets-page.js')).SecretsPage,
  },
  {
    name: 'usage',
    icon: 'usage',
    needs: 'usage.rollup',
    ...IN_LIST,
    role: 'maintainer',
    key: 'u',
    load: async () => (await import('./usage/usage-page.js')).UsagePage,
  },
  {
    name: 'extensions',
    icon: 'extension',
    needs: 'extensions.list',
    ...IN_LIST,
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
    icon: 'people',
    needs: 'personas.list',
    ...IN_LIST,
    load: async () => (await import('./personas/personas-page.js')).PersonasPage,
  },
  {
    name: 'automations',
    icon: 'clock',
    needs: 'automations.list',
    ...IN_LIST,
    load: async () => (await import('./automations/automations-page.js')).AutomationsPage,
  },
  {
    name: 'loops',
    icon: 'history',
    needs: 'loops.list',
    ...IN_LIST,
    load: async () => (await import('./loops/loops-page.js')).LoopsPage,
  },
  {
    name: 'workflows',
    icon: 'git',
    needs: 'workflows.list',
    ...IN_LIST,
    load: async () => (await import('./workflows/workflows-page.js')).WorkflowsPage,
  },
  {
    name: 'safety',
    icon: 'key',
    needs: 'safety.get',
    ...IN_LIST,
    load: async () => (await import('./safety/safety-page.js')).SafetyPage,
  },
  {
    name: 'privacy',
    icon: 'key',
    needs: 'shield.stats',
    ...IN_LIST,
    load: async () => (await import('./privacy/privacy-page.js')).PrivacyPage,
  },
  {
    name: 'skills',
    icon: 'skill',
    needs: 'skills.list',
    ...IN_LIST,
    load: async () => (await import('./skills/skills-page.js')).SkillsPage,
  },
  {
    name: 'settings',
    icon: 'settings',
    needs: 'settings.get',
    ...IN_LIST,
    key: 's',
    load: async () => (await import('./settings/settings-page.js')).SettingsPage,
  },
  {
    name: 'help',
    icon: 'skill',
    needs: 'system.info',
    ...IN_LIST,
    load: async () => (await import('./help/help-page.js')).HelpPage,
  },
  {
    name: 'more',
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

/** Every page; the first one is shown if the address names none. */
export const PAGES: readonly ConsolePageEntry[] = ENTRIES.map(page => ({
  label: page.name[0]!.toUpperCase() + page.name.slice(1),
  ...page,
}))
