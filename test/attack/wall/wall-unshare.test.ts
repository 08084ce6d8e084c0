import { holds } from './wall-users.js'

holds('unshare')
