// SPDX-License-Identifier: Apache-2.0
// Preloaded into servers that would listen on every address: they listen on 127.0.0.1.
const net = require('net');
const listen = net.Server.prototype._listen2;

net.Server.prototype._listen2 = function (address, port, type, ...rest) {
    if (!address && typeof port === 'number' && port >= 0)
        return listen.call(this, '127.0.0.1', port, 4, ...rest);
    return listen.call(this, address, port, type, ...rest);
};
