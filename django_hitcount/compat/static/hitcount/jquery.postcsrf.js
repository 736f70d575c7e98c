// The address for hits needs no CSRF token, so this is what jQuery has.
jQuery.postCSRF = jQuery.post;
