import type { CommandClass, CommandRules } from '../../settings/contract.js'
import type { ClassEntry } from '../contract.js'
import { CLASSES } from './classify.js'

const KNOWN: { readonly [one in CommandClass]: { readonly label: string; readonly examples: readonly string[] } } = {
  'git.destructive': {
    label: 'Overwrite or discard git history or work',
    examples: ['git push --force', 'git reset --hard', 'git clean -fd', 'git branch -D old'],
  },
  'git.publish': { label: 'Push to a remote', examples: ['git push', 'git push origin main'] },
  'files.destructive': {
    label: 'Delete folders without asking, or overwrite a device',
    examples: ['rm -rf build', 'find . -delete', 'dd of=/dev/sda'],
  },
  'secrets.access': {
    label: 'Read keys, credentials or .env files',
    examples: ['cat .env', 'cat ~/.ssh/id_ed25519', 'aws secretsmanager get-secret-value'],
  },
  'package.publish': {
    label: 'Publish a package, an image or a release',
    examples: ['npm publish', 'docker push acme/app', 'gh release create v1'],
  },
  'network.outbound': {
    label: 'Make a request to another host',
    examples: ['curl https://example.org', 'npm install'],
  },
  'database.destructive': {
    label: 'Drop, truncate, or delete from a table without where',
    examples: ['psql -c "drop table users"', 'redis-cli flushall'],
  },
  'infra.destructive': {
    label: 'Destroy, delete or apply on clusters and clouds',
    examples: ['terraform apply', 'kubectl delete pod web-1'],
  },
  'system.privileged': {
    label: 'Act on the machine with more rights',
    examples: ['sudo apt install jq', 'mount /dev/sdb1 /mnt', 'sysctl -w vm.swappiness=1'],
  },
}

/** A class as people read it. */
export const labelOf = (one: CommandClass): string => KNOWN[one].label

/** Every class with what the settings say of it. */
export const classEntries = (rules: CommandRules): ClassEntry[] =>
  CLASSES.map(one => {
    const setting = rules[one]
    return { class: one, label: KNOWN[one].label, examples: [...KNOWN[one].examples], ...(setting && { setting }) }
  })
