import { lineArt } from '../../../sdk/node/line-art.js'
import type { CardGuide, CatalogCard } from './contract.js'

/** The drawing of a card, and where a person gets its values. */
type CardLooks = Pick<CatalogCard, 'art'> & { readonly guide: CardGuide }

const branch = lineArt(
  'M6 3v12',
  'M18 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6z',
  'M6 21a3 3 0 1 0 0-6 3 3 0 0 0 0 6z',
  'M18 9a9 9 0 0 1-9 9',
)
const key = lineArt('M15 9a4 4 0 1 0-4 4', 'M12.5 11.5 21 20', 'M17 16l2-2', 'M20 19l1.5-1.5')

/** The forge's own page for tokens, at the address that the person gives. */
const ownForge = (scopes: string): CardGuide => ({
  urlFromField: 'url',
  path: '/user/settings/applications',
  linkLabel: 'Make a token',
  scopes,
  steps: [
    'Open the settings of the account that agents work as, and there Applications.',
    'Make a token for the repositories that agents need, with the scopes below.',
    'Copy it into the form: the server shows it once.',
  ],
})

const LOOKS: { readonly [card: string]: CardLooks } = {
  github: {
    art: branch,
    guide: {
      url: 'https://github.com/settings/personal-access-tokens/new',
      linkLabel: 'Make a token',
      scopes: 'Contents, Issues and Pull requests: read and write',
      steps: [
        'Choose the repositories that agents work on, and a date at which the token ends.',
        'Give it the permissions below, and no more.',
        'Copy it into the form: GitHub shows it once.',
      ],
    },
  },
  gitlab: {
    art: branch,
    guide: {
      url: 'https://gitlab.com/-/user_settings/personal_access_tokens',
      linkLabel: 'Make a token',
      scopes: 'api',
      steps: [
        'Make a token with the scope below; one of a project or group reaches less than your own.',
        'For a server of your own, make it there, and fill in the host.',
        'Copy it into the form: GitLab shows it once.',
      ],
    },
  },
  forgejo: { art: branch, guide: ownForge('repository and issue: read and write') },
  gitea: { art: branch, guide: ownForge('repository and issue: read and write') },
  token: {
    art: key,
    guide: {
      steps: [
        'Make a key at the service for agents alone, so that you can end it without ending others.',
        'Programs of turns find it in the variable, to whose name the id of the connection is added.',
      ],
    },
  },
  otp: {
    art: lineArt('M12 7v5l3 2', 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z'),
    guide: {
      steps: [
        'At the site, turn on codes of an app, and choose to enter the key by hand.',
        'Copy the key, or the whole otpauth:// address, into the form.',
        'Show a code here, and give it to the site: then it trusts the sandbox as the app.',
      ],
    },
  },
  mcp: {
    art: lineArt('M9 3v6', 'M15 3v6', 'M6 9h12v3a6 6 0 0 1-12 0z', 'M12 18v3'),
    guide: {
      steps: [
        'The documentation of the server names its address, or the program that serves it here.',
        'Leave the token empty for servers that people sign in to: connect first, then choose Sign in.',
        'Leave out tools that agents do not need: the more there are, the worse they choose.',
      ],
    },
  },
  ssh: {
    art: lineArt('M4 5h16v14H4z', 'M7 9l3 3-3 3', 'M13 15h4'),
    guide: {
      steps: [
        'Make a key for agents alone: ssh-keygen -t ed25519 -f agents -N ""',
        'On the server, add the line of agents.pub to ~/.ssh/authorized_keys of a user with few rights.',
        'Copy the whole file agents into Private key, and delete it.',
      ],
    },
  },
  agent: {
    art: lineArt('M5 9h14v10H5z', 'M12 5v4', 'M9 13v2', 'M15 13v2', 'M12 5a1 1 0 1 0 0-2 1 1 0 0 0 0 2z'),
    guide: {
      steps: [
        'Install the program on this machine, outside of the folders that turns write.',
        'Fill in the command that makes it speak the Agent Client Protocol over its input and output.',
        'Connect it, then choose Sign in where it has a sign-in command.',
      ],
    },
  },
  plugin: {
    art: lineArt('M10 4h4v3a2 2 0 1 1 0 4v3h-4', 'M10 4v3', 'M4 10h3a2 2 0 1 0 4 0h3v10H4z'),
    guide: {
      steps: [
        'Read the repository: its hooks and tool servers run in every turn.',
        'Copy the whole commit that you read: git rev-parse HEAD shows it.',
        'A private repository needs a token that reads it.',
      ],
    },
  },
  site: {
    art: lineArt('M3 5h18v14H3z', 'M3 9h18', 'M6 7h0', 'M9 7h0'),
    guide: {
      steps: [
        'Open an account for agents at the site, rather than giving them yours.',
        'Connect it, choose Sign in, and sign in once in the window that opens.',
        'Close the window: agents go on in that browser, signed in.',
      ],
    },
  },
  identity: {
    art: lineArt('M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z', 'M4 21a8 8 0 0 1 16 0'),
    guide: {
      steps: [
        'Take an address of a mailbox that agents may read, and that nothing of yours depends on.',
        'Connect the mailbox first where sites send codes to it, and name it below.',
      ],
    },
  },
  docker: {
    art: lineArt('M3 12h18a6 6 0 0 1-6 6H9a6 6 0 0 1-6-6z', 'M6 9h3v3', 'M9 6h3v6', 'M12 9h3v3'),
    guide: {
      steps: [
        'Install podman on this machine; the sandbox starts an engine of its own behind the wall.',
        'Connect it: turns find the engine in DOCKER_HOST, and their containers see no more than turns do.',
      ],
    },
  },
  wallet: {
    art: lineArt('M4 7h15a1 1 0 0 1 1 1v10H5a1 1 0 0 1-1-1z', 'M4 7a2 2 0 0 1 2-2h11v2', 'M16 13h1'),
    guide: {
      steps: [
        'Set the most that one payment and one day may cost before you put money on it.',
        'Connect it: the answer has the address of a new key, which never leaves the sandbox.',
        'Send a small amount to that address: whatever is on it can be spent within the limits.',
      ],
    },
  },
}

/** The looks of a card of this group; cards of others bring their own. */
export const looksOf = (card: string): CardLooks | undefined => (Object.hasOwn(LOOKS, card) ? LOOKS[card] : undefined)
