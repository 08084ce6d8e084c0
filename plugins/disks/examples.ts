import type { Examples } from '../../sdk/contract.js'
import type { DiskLink, DisksCalls } from './contract.js'

const PHOTOS: DiskLink = {
  id: 'photos',
  provider: 'webdav',
  state: 'mounted',
  source: 'https://cloud.example.org/dav/photos',
  mountPoint: '/mnt/sandbox/photos',
  link: 'photos',
  readOnly: false,
  via: 'davfs2',
  totalBytes: 1_000_000_000_000,
  freeBytes: 250_000_000_000,
  since: 1_791_800_000_000,
  autoMount: true,
}

/** One use of each call. */
export const examples = (): Examples<DisksCalls> => ({
  'GET /disks': { output: { disks: [PHOTOS] } },
  'GET /disks/{id}': {
    input: { id: 'photos' },
    output: {
      ...PHOTOS,
      missing: [],
      carriers: [
        { via: 'davfs2', usable: true },
        { via: 'rclone', usable: false, reason: 'the program rclone is missing' },
      ],
      users: [{ pid: 4711, command: 'tail', paths: 1 }],
      log: 'mounting https://cloud.example.org/dav/photos with davfs2',
      logAt: 1_791_800_000_000,
    },
  },
  'POST /disks/probe': {
    input: { provider: 'smb', server: 'nas.example.org', share: 'photos' },
    output: {
      reachable: true,
      latencyMs: 3,
      auth: 'untested',
      shares: [{ name: 'photos', comment: 'Pictures of everybody' }, { name: 'scans' }],
    },
  },
  'POST /disks/{id}/mount': {
    input: { id: 'photos' },
    output: { message: { kind: 'result', ok: true, disk: PHOTOS }, done: { disk: PHOTOS } },
  },
  'POST /disks/{id}/unmount': { input: { id: 'photos', force: false }, output: { ok: true } },
})
