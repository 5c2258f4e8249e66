# CVE-2023-46852: memcached's proxy copies what stands before the first key of a
# `get` with many keys, spaces too, into memory on its stack that has room for 30
# bytes of it.  More spaces than these end the native server, too.
server=memcached without=0009-CVE-2023-46852.patch
report=stack-buffer-overflow function=proxy_process_command
alive='get a\r\n' reply=END

# The proxy asks a server behind it: any memcached.
bug_begin()
{
	memcached -u nobody -l 127.0.0.1 -p "$spare" >behind.log 2>&1 </dev/null &
	helpers=$!
}

arguments()
{
	cat >proxy.lua <<-END
	function mcp_config_pools()
		return mcp.pool({ mcp.backend('behind', '127.0.0.1', '$spare') })
	end
	function mcp_config_routes(pool)
		mcp.attach(mcp.CMD_ANY_STORAGE, function(request) return pool(request) end)
	end
	END
	words="-u nobody -l 127.0.0.1 -p $port -t 2 -o proxy_config=$PWD/proxy.lua"
}
