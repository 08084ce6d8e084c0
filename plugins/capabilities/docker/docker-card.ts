import type { CardField, CatalogCard } from '../cards/contract.js'

type DockerCard = Pick<CatalogCard, 'id' | 'name' | 'kind' | 'category' | 'description' | 'hint'> & {
  readonly fields: readonly CardField[]
  readonly singleton: true
}

/** The card of the container engine. */
export const DOCKER: DockerCard = {
  id: 'docker',
  name: 'Containers',
  kind: 'docker',
  category: 'servers',
  singleton: true,
  description: 'An engine with which agents build images and run containers, behind the wall of their conversation.',
  hint: 'Each conversation has an engine of its own: its images and containers go with it.',
  fields: [
    {
      key: 'registryMirror',
      label: 'Mirror of Docker Hub',
      placeholder: 'mirror.example.org',
      hint: 'Conversations reach it only where their network allows it.',
      optional: true,
    },
    {
      key: 'insecureRegistries',
      label: 'Registries without TLS, one a line',
      placeholder: 'registry.example.org:5000',
      optional: true,
      multiline: true,
    },
    {
      key: 'addressPool',
      label: 'Addresses of networks that are made',
      placeholder: '10.89.0.0/16',
      optional: true,
    },
  ],
}
