//! Where fencing tokens come from: leases and grants from etcd behind one seam.
