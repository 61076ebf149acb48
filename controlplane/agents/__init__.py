"""What the proxies' agents said last, and the routing tables that they are given.

It knows agents as reports. It knows no HTTP and no database.
"""
